"""References and translations of a test set, from delimited text and the output of ``fairseq-generate``."""

import re
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Collection, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from docnmt_fairseq.boundaries import DOCUMENT, is_boundary, levels_ended
from docnmt_fairseq.corpus.delimited import parallel_lines, read_documents
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import WORD_BEGINS
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import refuse_streams

ON_EMPTY = ("score", "error")
LEVELS = ("sentence", "document")
HYPOTHESIS = re.compile(r"([HD])-(\d+)\t(?:-?inf|nan|-?[\d.]+(?:e[-+]\d+)?)(?:\t(.*))?")  # id, score, text
CONTINUED = re.compile(r"\S@@(?: |$)")  # subword of subword-nmt
MAX_IDS = 5  # shown in errors

Stream = List[List[str]]  # sentences of each document


def at_level(stream: Stream, level: str) -> Stream:
    """Returns the text with one sentence per segment of the level; a document is its sentences joined by spaces."""
    if level == "document":
        return [[" ".join(filter(None, sentences))] for sentences in stream]
    return stream


def segments(stream: Stream) -> List[str]:
    """Flat list of the segments of all documents."""
    return list(chain.from_iterable(stream))


@dataclass(frozen=True)
class References:
    """References of a test set, optionally with its source, by document."""

    files: Tuple[Path, ...]
    streams: List[Stream]  # of each reference
    source: Optional[Stream]
    lines: List[List[int]]  # line number of each sentence, from 1; the same in every file
    level: str = "sentence"  # one of LEVELS: segments that are stored as sentences

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.lines)

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return sum(map(len, self.lines))

    def at_level(self, level: str) -> "References":
        """Returns the test set with the segments of the level as sentences; a document has its first line number."""
        if level == self.level:
            return self
        return replace(
            self,
            streams=[at_level(stream, level) for stream in self.streams],
            source=self.source and at_level(self.source, level),
            lines=[numbers[:1] for numbers in self.lines],
            level=level,
        )


def read_references(files: Sequence[Path], source: Optional[Path] = None) -> References:
    """Reads delimited references and source.

    Raises:
        InputError: unreadable files, or different document boundaries.
    """
    refuse_streams(*files)  # read once per system
    paths = [*files, *([source] if source else [])]
    sides: List[Stream] = [[] for _ in paths]
    lines: List[List[int]] = []
    for document in read_documents(paths):
        for side, stream in enumerate(sides):
            stream.append([texts[side] for texts in document.sentences()])
        lines.append([numbers[0] for paragraph in document.lines for numbers in paragraph])
    return References(tuple(files), sides[: len(files)], sides[-1] if source else None, lines)


def read_log(path: Path, references: References) -> Stream:
    """Reads the translations of a test set from the output of ``fairseq-generate``, in any order.

    Raises:
        InputError: missing, repeated or unknown ids, or text that is still split into subwords.
    """
    return _by_document(path, restore_document_order(path, references.files[0]), references)


def read_text(path: Path, references: References, on_empty: str = "score") -> Stream:
    """Reads the translations of a test set from delimited text with the boundaries of the references.

    Args:
        path: delimited text.
        references: test set.
        on_empty: treatment of an empty line in place of a sentence. ``score``: an empty translation, which models
            sometimes produce; ``error``: a misplaced document boundary.

    Raises:
        InputError: a different number of lines or different boundaries; names file and line.
    """
    lines = []
    reference_file = references.files[0]
    for number, (text, reference) in parallel_lines((path, reference_file)):
        if text != reference if is_boundary(reference) else levels_ended(text):
            message = f"{_describe(text)} here, but {_describe(reference)} in {reference_file}; boundaries must match"
            raise InputError.at(path, number, message)
        if text == DOCUMENT and not is_boundary(reference) and on_empty == "error":
            message = f"empty line here, but a sentence in {reference_file}; --on-empty score allows empty translations"
            raise InputError.at(path, number, message)
        lines.append(text)
    return _by_document(path, lines, references)


def rows_by_line(path: Path, references: References) -> Iterator[Tuple[int, int, List[str]]]:
    """Yields row number, index of the sentence, and columns of a table ``LINE<TAB>COLUMN<TAB>…`` about sentences.

    Args:
        path: table; lines of the delimited reference from 0, boundaries included.
        references: test set.

    Raises:
        InputError: a line that is not a sentence.
    """
    numbers = chain.from_iterable(references.lines)
    sentences = {str(number - 1): sentence for sentence, number in enumerate(numbers)}
    for row, text in enumerate(read_lines(path), start=1):
        line, *columns = text.split("\t")
        if text and line not in sentences:
            message = f"line {line} of {references.files[0]} is not a sentence; lines count from 0, with empty ones"
            raise InputError.at(path, row, message)
        if text:
            yield row, sentences[line], columns


def read_labels(path: Path, references: References, allowed: Sequence[str]) -> List[Optional[str]]:
    """Label of each sentence, [sentences]; None for unlabelled sentences.

    Args:
        path: rows ``LINE<TAB>LABEL``, see :func:`rows_by_line`.
        references: test set.
        allowed: labels.

    Raises:
        InputError: another label, or a line that is not a sentence.
    """
    labels: List[Optional[str]] = [None] * references.sentences
    for row, sentence, columns in rows_by_line(path, references):
        if len(columns) != 1 or columns[0] not in allowed:
            raise InputError.at(path, row, f"expected LINE<TAB>LABEL with {' or '.join(allowed)}")
        labels[sentence] = columns[0]
    return labels


def _describe(line: str) -> str:
    return "the end of a document" if line == DOCUMENT else line if levels_ended(line) else "a sentence"


def _by_document(path: Path, lines: Sequence[str], references: References) -> Stream:
    mark = subword_mark(lines)
    if mark and not any(subword_mark(document) for stream in references.streams for document in stream):
        raise InputError(f"{path}: contains subwords ({mark}); generate with --remove-bpe (sentencepiece)")
    return [[lines[number - 1] for number in numbers] for numbers in references.lines]


def parse_generate_log(path: Path) -> Dict[int, str]:
    """Returns the best hypothesis of every sample id, in the order of the log.

    The first hypothesis of an id is the best one, since fairseq sorts ``--nbest``. Its detokenised form (line ``D``) is
    preferred to line ``H``.

    Raises:
        InputError: repeated ids.
    """
    repeated: Set[int] = set()
    raw: Dict[int, str] = {}
    detokenised: Dict[int, str] = {}
    last = None
    for match in filter(None, map(HYPOTHESIS.fullmatch, read_lines(path))):
        sample, text = int(match[2]), (match[3] or "").strip()
        if match[1] == "D":
            detokenised.setdefault(sample, text)
            continue
        if sample in raw and sample != last:  # the hypotheses of one --nbest are adjacent
            repeated.add(sample)
        last = sample
        raw.setdefault(sample, text)
    if repeated:
        raise InputError(f"{path}: repeated ids {_first(repeated)}; expected the log of one run")
    return {**raw, **detokenised}


def restore_document_order(log: Path, delimited: Path) -> List[str]:
    """Returns one line per line of ``delimited``: the hypothesis of a sentence, or the boundary itself.

    Args:
        log: output of ``fairseq-generate``; sample ids are line numbers of ``delimited``, from 0.
        delimited: translated source text.

    Raises:
        InputError: see :func:`parse_generate_log`; sentences without a hypothesis, or hypotheses without a line.
    """
    hypotheses = parse_generate_log(log)
    lines = list(read_lines(delimited))
    unmatched = {i for i, line in enumerate(lines) if not is_boundary(line)} - {*hypotheses}
    unmatched |= {i for i in hypotheses if i >= len(lines)}
    if unmatched:
        # fairseq's own tasks drop the last sentences if their number is not a multiple of this option.
        remedy = "generate this split, without --quiet, with --required-batch-size-multiple 1"
        raise InputError(f"{log}: ids that the log or {delimited} lacks: {_first(unmatched)}; {remedy}")
    # Tasks that do not know boundaries have translated them; those hypotheses are ignored.
    return [line if is_boundary(line) else hypotheses[i] for i, line in enumerate(lines)]


def subword_mark(lines: Iterable[str]) -> Optional[str]:
    """Subword marker found in the lines, or None for text of whole words."""
    for line in lines:
        if WORD_BEGINS in line:
            return WORD_BEGINS
        if CONTINUED.search(line):
            return "@@"
    return None


def _first(ids: Collection[int]) -> str:
    ordered = sorted(ids)
    more = f" and {len(ordered) - MAX_IDS} more" if len(ordered) > MAX_IDS else ""
    return ", ".join(map(str, ordered[:MAX_IDS])) + more

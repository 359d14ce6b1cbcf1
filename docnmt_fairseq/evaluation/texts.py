"""References and translations as documents of sentences, read from delimited text or the output of fairseq-generate."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.delimited import parallel_lines, read_documents
from docnmt_fairseq.corpus.files import refuse_streams
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import restore_document_order, subword_mark
from docnmt_fairseq.marks import DOCUMENT, is_mark, levels_ended

ON_EMPTY = ("error", "score")
LEVELS = ("sentence", "document")

Stream = List[List[str]]  # the sentences of each document


def at_level(stream: Stream, level: str) -> Stream:
    """A text in which what is one segment on a level is one sentence: itself, or whole documents, spaces between."""
    if level == "document":
        return [[" ".join(filter(None, sentences))] for sentences in stream]
    return stream


def segments(stream: Stream, level: str = "sentence") -> List[str]:
    """The segments of all documents in order: sentences, or documents."""
    return [segment for of_document in at_level(stream, level) for segment in of_document]


@dataclass(frozen=True)
class References:
    """A test set: its references, and its source where that was given.

    Attributes:
        files: of the references.
        streams: the sentences of each reference, by document.
        source: the same of the source.
        lines: for each sentence the line it stands on, from 1; the same in every file.
        level: of ``LEVELS``: what stands here as a sentence.
    """

    files: Tuple[Path, ...]
    streams: List[Stream]
    source: Optional[Stream]
    lines: List[List[int]]
    level: str = "sentence"

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.lines)

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return sum(map(len, self.lines))

    def at_level(self, level: str) -> "References":
        """The same test set with the segments of a level as its sentences; a document stands on its first line."""
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
    """Reads the references of a test set, one delimited file each.

    Raises:
        InputError: a file cannot be read, or only once; the files do not have the same marks on the same lines, or
            there is no sentence in them; names file and line.
    """
    refuse_streams(*files)  # translations are compared with them, one after another
    paths = [*files, *([source] if source else [])]
    sides: List[Stream] = [[] for _ in paths]
    lines: List[List[int]] = []
    for document in read_documents(paths):
        for side, stream in enumerate(sides):
            stream.append([texts[side] for texts in document.sentences()])
        lines.append([numbers[0] for paragraph in document.lines for numbers in paragraph])
    if not lines:
        raise InputError(f"{files[0]}: holds no sentence: nothing to score")
    return References(tuple(files), sides[: len(files)], sides[-1] if source else None, lines)


def read_log(path: Path, references: References) -> Stream:
    """Reads the translations of a test set that ``fairseq-generate`` printed, in any order.

    Raises:
        InputError: an id is missing, comes twice or is none of the references' lines; or subwords were left in.
    """
    lines = restore_document_order(path, references.files[0])
    _refuse_subwords(path, lines, references)
    return _by_document(lines, references)


def read_text(path: Path, references: References, on_empty: str = "error") -> Stream:
    """Reads the translations of a test set from delimited text with the references' marks.

    Args:
        path: the text.
        references: of the test set.
        on_empty: what an empty line is where the references have a sentence: "error", or "score" for an empty
            translation. Models write such, and the text alone does not tell them from a misplaced boundary.

    Raises:
        InputError: another number of lines, or marks on other lines, than the references have; names file and line.
    """
    lines = []
    reference_file = references.files[0]
    for number, (text, reference) in parallel_lines((path, reference_file)):
        if text != reference and is_mark(reference):
            found = _called(text)
            raise InputError.at(path, number, f"{found} here, but {_called(reference)} in {reference_file}; {_REMEDY}")
        if levels_ended(text) and not is_mark(reference):
            raise InputError.at(path, number, f"{text} here, but a sentence in {reference_file}; {_REMEDY}")
        if text == DOCUMENT and not is_mark(reference) and on_empty == "error":
            message = (
                f"empty line here, but a sentence in {reference_file}: a document boundary in the wrong place, or an "
                "empty translation, which --on-empty score accepts"
            )
            raise InputError.at(path, number, message)
        lines.append(text)
    _refuse_subwords(path, lines, references)
    return _by_document(lines, references)


_REMEDY = "a translation needs the documents and paragraphs of its reference, on the same lines"


def _called(line: str) -> str:
    return "the end of a document" if line == DOCUMENT else line if levels_ended(line) else "a sentence"


def _refuse_subwords(path: Path, lines: Sequence[str], references: References) -> None:
    mark = subword_mark(lines)
    if mark and not any(subword_mark(document) for stream in references.streams for document in stream):
        raise InputError(f"{path}: holds subwords ({mark}); generate with --remove-bpe (sentencepiece), or join them")


def _by_document(lines: Sequence[str], references: References) -> Stream:
    return [[lines[number - 1] for number in numbers] for numbers in references.lines]

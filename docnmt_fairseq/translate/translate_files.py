"""Translation of files document by document, many documents per batch; finished documents are written at once."""

import math
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import Callable, Iterable, Iterator, List, Optional, Protocol, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import Document
from docnmt_fairseq.translate.inputs import InputFile
from docnmt_fairseq.translate.lines import Origin, TranslatedLine
from docnmt_fairseq.translate.writers import FileWriter, StandardOutput, Writer

EMPTY_LINES = ("document", "paragraph")  # what an empty line ends
GROUP_SENTENCES = 4_000  # sentences translated together; an interruption loses at most these
ALL = math.inf
SCORES_HEADER = "line\trank\tscore\ttranslation\n"


class Translator(Protocol):
    """The part of :class:`~docnmt_fairseq.translate.translator.DocumentTranslator` that is needed."""

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """Returns every line with its translations and their scores."""


@dataclass(frozen=True)
class _Step:
    """A document to translate, or None at the end of a file."""

    file: InputFile
    writer: Writer
    document: Optional[Document]


def translate_files(
    files: Iterable[InputFile],
    translator: Translator,
    empty_lines: str,
    progress: Callable[[int], object],
    scores: bool = False,
    *,
    resume: bool = False,
    fingerprint: str = "",
    group_sentences: Optional[float] = None,
) -> None:
    """Writes the translations; each file gets its name when it is complete.

    Args:
        files: input files.
        translator: translator of lines.
        empty_lines, progress: see :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate`.
        scores: also writes a table with the n-best list of every line and its scores.
        resume: continues interrupted files.
        fingerprint: of everything but the text that the translations depend on.
        group_sentences: sentences translated together, in whole documents; None: :data:`GROUP_SENTENCES`.

    Raises:
        InputError: a sentence that is too long, a file that cannot be written; finished documents stay.
    """
    writers: List[Writer] = []

    def steps() -> Iterator[_Step]:
        for file in files:
            writer = _writer(file, fingerprint, resume, scores)
            writers[:] = [*(other for other in writers if not other.finished), writer]
            for document in writer.skip_written(file.remaining()):
                yield _Step(file, writer, document)
            yield _Step(file, writer, None)

    try:
        for group in _groups(steps(), GROUP_SENTENCES if group_sentences is None else group_sentences):
            _translate(group, translator, empty_lines, progress, scores)
    finally:
        for writer in writers:
            writer.stop()


def _writer(file: InputFile, fingerprint: str, resume: bool, scores: bool) -> Writer:
    return StandardOutput() if file.target is None else FileWriter(file.target, fingerprint, resume, scores)


def _groups(steps: Iterable[_Step], most: float) -> Iterator[List[_Step]]:
    """Yields consecutive steps of up to so many sentences, at least one document."""
    group: List[_Step] = []
    sentences = 0
    for step in steps:
        size = step.document.sentences if step.document else 0
        if sentences and sentences + size > most:
            yield group
            group, sentences = [], 0
        group.append(step)
        sentences += size
    if group:
        yield group


def _translate(
    group: Sequence[_Step],
    translator: Translator,
    empty_lines: str,
    progress: Callable[[int], object],
    scores: bool,
) -> None:
    """Translates and writes a group; consecutive documents of a file are one text."""
    steps = (step for step in group if step.document)
    texts = [list(own) for _, own in groupby(steps, lambda step: id(step.file))]
    documents = [[step.document for step in own if step.document] for own in texts]
    names = [Origin.of(own[0].file.name, own[0].file.key, text[0].offset) for own, text in zip(texts, documents)]
    lines = [list(chain.from_iterable(document.lines for document in text)) for text in documents]
    try:
        found = chain.from_iterable(translator.translate_lines(lines, names, empty_lines, progress))
    except InputError as error:
        raise _located(error, names, documents, lines) from error
    for step in group:
        if step.document is None:
            step.writer.finish()
        else:
            own = list(islice(found, len(step.document.lines)))
            content = step.document.finish([line.text for line in own])
            step.writer.add(step.document, content, _score_rows(step.document, own) if scores else b"")
    group[-1].writer.save()


def _score_rows(document: Document, lines: Sequence[TranslatedLine]) -> bytes:
    """Rows of the table of scores for a document, with the header for the first one of a file."""
    rows = [] if document.offset else [SCORES_HEADER]
    for number, line in enumerate(lines, start=document.first_line or 1):
        rows += [
            f"{number}\t{rank}\t{one.score:.6f}\t{one.text}\n" for rank, one in enumerate(line.translations, start=1)
        ]
    return "".join(rows).encode()


def _located(
    error: InputError, names: Sequence[str], texts: Sequence[Sequence[Document]], lines: Sequence[Sequence[str]]
) -> InputError:
    """Returns the error with the line of the file instead of the line of the translated text."""
    number = next((number for number, name in enumerate(names) if error.place and name is error.place[0]), None)
    if error.place is None or number is None:
        return error
    path, line, message = error.place
    first_line = texts[number][0].first_line
    if first_line is not None:
        return InputError.at(path, first_line + line - 1, message)
    return InputError(f"{path}: {lines[number][line - 1][:40]!r}...: {message}")

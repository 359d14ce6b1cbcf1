"""Translation of files document by document, many documents per batch; finished documents are written at once."""

import math
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Protocol, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import Document
from docnmt_fairseq.translate.inputs import InputFile
from docnmt_fairseq.translate.lines import Origin, TranslatedLine
from docnmt_fairseq.translate.writers import FileWriter, Writer

GROUP_SENTENCES = 4_000  # sentences translated together; an interruption loses at most these
ALL = math.inf
SCORES_HEADER = "line\trank\tscore\ttranslation\n"


class Translator(Protocol):
    """Interface of :class:`~docnmt_fairseq.translate.translator.DocumentTranslator` that is used here."""

    @property
    def translate_lines(self) -> Callable[..., List[List[TranslatedLine]]]:
        """Returns every line with its translations and their scores."""


class _Step(NamedTuple):
    """Document to translate, or None at the end of a file."""

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
    line_inputs: Mapping[str, Iterator[str]] = MappingProxyType({}),
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
        line_inputs: by name of :data:`~docnmt_fairseq.translate.inputs.LINE_INPUTS`, a line for each line to translate.

    Raises:
        InputError: a sentence that is too long, a file that cannot be written; finished documents stay.
    """
    unfinished: List[Writer] = []

    def steps() -> Iterator[_Step]:
        for file in files:
            writer = Writer() if file.target is None else FileWriter(file.target, fingerprint, resume, scores)
            unfinished.append(writer)
            for document in writer.skip_written(file.remaining()):
                yield _Step(file, writer, document)
            yield _Step(file, writer, None)

    try:
        for group in _groups(steps(), GROUP_SENTENCES if group_sentences is None else group_sentences):
            found = _translated(group, translator, empty_lines, progress, line_inputs)
            for _, writer, document in group:
                if document is None:
                    writer.finish()
                    unfinished.remove(writer)
                    continue
                lines = list(islice(found, len(document.lines)))
                content = document.finish([line.text for line in lines])
                writer.add(document, content, _score_rows(document, lines) if scores else b"")
            group[-1].writer.save()
    finally:
        for writer in unfinished:
            writer.stop()


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


def _translated(
    group: Sequence[_Step],
    translator: Translator,
    empty_lines: str,
    progress: Callable[[int], object],
    line_inputs: Mapping[str, Iterator[str]],
) -> Iterator[TranslatedLine]:
    """Returns the translated lines of a group; consecutive documents of a file are one text."""
    texts: Dict[Any, List[Document]] = {}
    for file, _, document in group:
        if document is not None:
            texts.setdefault(Origin(file.name, file.key, document.offset), []).append(document)
    lines = [[line for document in documents for line in document.lines] for documents in texts.values()]
    own = {name: [list(islice(given, len(text))) for text in lines] for name, given in line_inputs.items()}
    try:
        return chain.from_iterable(translator.translate_lines(lines, list(texts), empty_lines, progress, **own))
    except InputError as error:
        first_lines = {name: documents[0].first_line for name, documents in texts.items()}
        raise _in_file(error, dict(zip(texts, lines)), first_lines) from None


def _in_file(
    error: InputError, lines: Mapping[Any, Sequence[str]], first_lines: Mapping[Any, Optional[int]]
) -> InputError:
    """Returns an error about a line with the line's number in its file, or its text in formats without lines."""
    if error.place is None or error.place[0] not in lines:
        return error
    name, line, message = error.place
    first = first_lines[name]
    if first is not None:
        return InputError.at(name, first + line - 1, message)
    return InputError(f"{name}: {lines[name][line - 1][:40]!r}...: {message}")


def _score_rows(document: Document, lines: Sequence[TranslatedLine]) -> bytes:
    """Returns the rows of a document in the table of scores, with the header for the first document of a file."""
    rows = [] if document.offset else [SCORES_HEADER]
    for number, line in enumerate(lines, start=document.first_line or 1):
        rows += [
            f"{number}\t{rank}\t{one.score:.6f}\t{one.text}\n" for rank, one in enumerate(line.translations, start=1)
        ]
    return "".join(rows).encode()

"""Translates files document by document, many together so that batches are full, and writes them as they are done."""

import math
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Callable, Iterable, Iterator, List, Mapping, Optional, Protocol, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.lines import Origin, TranslatedLine
from docnmt_fairseq.translate.output import Output
from docnmt_fairseq.translate.texts import FileToTranslate, PlacedDocument

EMPTY_LINES = ("document", "paragraph")  # what they end
TOGETHER = 4_000  # sentences that are translated together; what is lost at most when the work is interrupted
ALL = math.inf
HEADER = "line\trank\tscore\ttranslation\n"  # of a table of scores

NO_SETTINGS: Mapping[str, str] = {}


class Translator(Protocol):
    """The part of :class:`~docnmt_fairseq.translate.translator.DocumentTranslator` that is needed."""

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """Every line with its translations and their scores."""


@dataclass(frozen=True)
class _Step:
    """A document to translate, or None at the end of a file."""

    text: FileToTranslate
    output: Output
    document: Optional[PlacedDocument]


def translate_files(
    texts: Iterable[FileToTranslate],
    translator: Translator,
    empty_lines: str,
    progress: Callable[[int], object],
    scores: bool = False,
    *,
    resume: bool = False,
    settings: Mapping[str, str] = NO_SETTINGS,
    together: Optional[float] = None,
) -> None:
    """Writes the translations; each file appears when it is complete.

    Args:
        texts: what to do.
        translator: does it.
        empty_lines, progress: see :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate`.
        scores: beside each translation write a table of all that the search gives of its lines, with scores.
        resume: go on where the translation of a file was interrupted.
        settings: that the translations depend on; what was begun with others is not gone on with.
        together: sentences that are translated together, whole documents of them; None: :data:`TOGETHER`.

    Raises:
        InputError: a sentence that is too long, a file that cannot be written; what was finished before stays.
    """
    steps = _Steps(texts, settings, resume, scores)
    try:
        for group in _groups(steps, TOGETHER if together is None else together):
            _translate(group, translator, empty_lines, progress, scores)
    finally:
        steps.stop()


class _Steps:
    """The documents of all texts, and the ends of the files.

    Args:
        texts, settings, resume, scores: see :func:`translate_files`.
    """

    def __init__(self, texts: Iterable[FileToTranslate], settings: Mapping[str, str], resume: bool, scores: bool):
        self.texts, self.settings, self.resume, self.scores = texts, settings, resume, scores
        self.open: List[Output] = []

    def __iter__(self) -> Iterator[_Step]:
        for text in self.texts:
            output = text.output(self.settings, self.resume, self.scores)
            self.open = [*(other for other in self.open if not other.finished), output]
            for document in output.remaining(text.documents()):
                yield _Step(text, output, document)
            yield _Step(text, output, None)

    def stop(self) -> None:
        """Ends what is not complete."""
        for output in self.open:
            output.stop()


def _groups(steps: Iterable[_Step], together: float) -> Iterator[List[_Step]]:
    group: List[_Step] = []
    sentences = 0
    for step in steps:
        size = step.document.sentences if step.document else 0
        if sentences and sentences + size > together:
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
    """Translates and writes some documents; those of one file are one text."""
    texts = [list(steps) for _, steps in groupby((step for step in group if step.document), attrgetter("text"))]
    names = [_origin(steps[0]) for steps in texts]
    lines = [[line for step in steps for line in _lines(step)] for steps in texts]
    try:
        found = chain.from_iterable(translator.translate_lines(lines, names, empty_lines, progress))
    except InputError as error:
        raise _placed(error, names, texts, lines) from error
    for step in group:
        if step.document is not None:
            _write(step, step.document, list(islice(found, len(step.document.lines))), scores)
        else:
            if not scores:
                step.text.drop_table()
            step.output.finish()
            step.text.finish()
    if group:
        group[-1].output.save()


def _write(step: _Step, document: PlacedDocument, lines: Sequence[TranslatedLine], scores: bool) -> None:
    """Writes a document, with the table of its lines' scores if that is wanted."""
    content = document.finish([line.text for line in lines])
    table = "" if document.first_line not in (None, 1) or step.text.first else HEADER
    for number, line in enumerate(lines if scores else (), start=document.first_line or 1):
        for rank, one in enumerate(line.translations, start=1):
            table += f"{number}\t{rank}\t{one.score:.6f}\t{one.text}\n"
    step.output.add(document, content, table.encode())


def _origin(step: _Step) -> Origin:
    return Origin.of(step.text.name, step.text.key, step.document.line if step.document else 0)


def _lines(step: _Step) -> List[str]:
    return step.document.lines if step.document else []


def _placed(
    error: InputError, names: Sequence[str], texts: Sequence[Sequence[_Step]], lines: Sequence[Sequence[str]]
) -> InputError:
    """The error with the line of the file in place of that of what was translated."""
    number = next((number for number, name in enumerate(names) if error.place and name is error.place[0]), None)
    if error.place is None or number is None:
        return error
    path, line, message = error.place
    document = texts[number][0].document
    if document is not None and document.first_line is not None:
        return InputError.at(path, document.first_line + line - 1, message)
    return InputError(f"{path}: {lines[number][line - 1][:40]!r}...: {message}")

"""What a request holds, as lines for the translator, and the way back from translated lines to its answer."""

import io
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH, is_boundary
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.translate.formats import RUNNING, Document, Format, Reading, format_of
from docnmt_fairseq.translate.formats.limits import FormatLimits
from docnmt_fairseq.translate.lines import TranslatedLine

Languages = Tuple[str, str]


@dataclass(frozen=True)
class Place:
    """Where a sentence is in a request: numbers of document, paragraph and sentence, from 0."""

    document: int
    paragraph: int
    sentence: int


@dataclass(frozen=True)
class SourceText:
    """The text of a request.

    Attributes:
        name: what messages call it.
        lines: its sentences and marks.
        places: of each line that is a sentence; None of a mark.
        finish: gives the translated text from what becomes of the lines.
        numbered: whether lines have the numbers that they have for the client.
        beside: line inputs of the translation, by :data:`~docnmt_fairseq.translate.line_inputs.LINE_INPUTS`.
    """

    name: str
    lines: List[str]
    places: List[Optional[Place]]
    finish: Callable[[Sequence[TranslatedLine]], bytes]
    numbered: bool = False
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def paragraphs(self, lines: Sequence[Any]) -> List[List[Any]]:
        """What becomes of the lines that are sentences, by paragraph."""
        found: Dict[Tuple[int, int], List[Any]] = {}
        for place, line in zip(self.places, lines):
            if place is not None:
                found.setdefault((place.document, place.paragraph), []).append(line)
        return list(found.values())

    def refusal(self, error: InputError) -> Refusal:
        """What to say of an error in a line: where it is for the client."""
        if error.place is None:
            return Refusal(422, str(error))
        return self.refusal_at(error.place[1] - 1, error.place[2])

    def refusal_at(self, line: int, message: str) -> Refusal:
        """What to say of line ``line``, from 0."""
        place = self.places[line] if line < len(self.places) else None
        if self.numbered or place is None:
            return Refusal(422, f"{self.name}, line {line + 1}: {message}")
        where = f"paragraph {place.paragraph + 1}, sentence {place.sentence + 1}"
        return Refusal(422, f"{self.name}, {where} ({self.lines[line][:40]!r}): {message}")

    def check(self, max_characters: int) -> None:
        """Raises :class:`Refusal` for a line of more characters, or what is told of one; names it."""
        beside = [(f"{name}:", told, "") for name, told in self.beside.items()]
        for what, lines, advice in (("a sentence of", self.lines, "; divide it"), *beside):
            for number, line in enumerate(lines):
                if len(line) > max_characters:
                    message = f"{what} {len(line):,} characters, but at most {max_characters:,} are taken{advice}"
                    raise self.refusal_at(number, message)


def of_paragraphs(
    paragraphs: Sequence[Sequence[str]], beside: Mapping[str, Sequence[Sequence[str]]] = MappingProxyType({})
) -> SourceText:
    """Paragraphs of sentences; a sentence of which nothing can be seen is none, and its translation is empty.

    Args:
        paragraphs: of sentences.
        beside: what is told of their translations, in the same shape, see :class:`SourceText`.

    Raises:
        InputError: something is told of what is no sentence, or a mark of what is one.
    """
    lines: List[str] = []
    told: Dict[str, List[str]] = {name: [] for name in beside}
    places: List[Optional[Place]] = []
    for p, sentences in enumerate(paragraphs):
        shown = [(s, sentence) for s, sentence in enumerate(sentences) if not is_boundary(normalise(sentence))]
        if shown and lines:
            lines.append(PARAGRAPH)
            places.append(None)
            for of_lines in told.values():
                of_lines.append("")
        lines += [sentence for _, sentence in shown]
        places += [Place(0, p, s) for s, _ in shown]
        for name, by_paragraph in beside.items():
            told[name] += [by_paragraph[p][s] for s, _ in shown]
            _check_beside(name, p, sentences, by_paragraph[p])
    return SourceText("paragraphs", lines, places, _plain, beside=told)


def _check_beside(name: str, p: int, sentences: Sequence[str], told: Sequence[str]) -> None:
    """Refuses what is told of the translations of a paragraph, and cannot be."""
    for s, (sentence, line) in enumerate(zip(sentences, told)):
        place, mark = f"paragraph {p + 1}, sentence {s + 1}", normalise(line)
        if line and is_boundary(normalise(sentence)):
            raise InputError(f"{name}: {place} is no sentence; leave it empty")
        if mark and is_boundary(mark):
            raise InputError(f"{name}: {mark}, but {place} is a sentence; leave it empty")


def in_shape(paragraphs: Sequence[Sequence[str]], source: SourceText, texts: Sequence[str]) -> List[List[str]]:
    """The translations of the lines of :func:`of_paragraphs` by paragraph; empty ones of sentences left out."""
    shape = [["" for _ in sentences] for sentences in paragraphs]
    for place, line in zip(source.places, texts):
        if place is not None:
            shape[place.paragraph][place.sentence] = line
    return shape


def of_running_text(text: str, languages: Languages, limits: FormatLimits = FormatLimits()) -> SourceText:
    """Running text, divided into sentences; empty lines end paragraphs.

    Raises:
        TooLarge: there is more than ``limits`` allow.
    """
    reading = Reading(lambda: languages, running=True, limits=limits)
    return _of_documents("text", format_of("", RUNNING, reading), text.encode())


def kind_of(name: str, format: str) -> str:
    """The format of a file.

    Args:
        name: whose ending tells it where no format is named.
        format: its name, or "".

    Raises:
        InputError: there is no such format.
    """
    return format_of(name, format, Reading()).name


def of_file(
    content: bytes,
    name: str,
    format: str,
    languages: Languages,
    empty_lines: str,
    limits: FormatLimits = FormatLimits(),
) -> SourceText:
    """A file of any format.

    Args:
        content: of the file.
        name: what messages call it; "": text.
        format: its name.
        languages: of source and target.
        empty_lines: what they end in text of a sentence a line.
        limits: of what it may hold.

    Raises:
        InputError: it is not of its format, or holds more.
    """
    reading = Reading(lambda: languages, empty_lines, limits=limits)
    return _of_documents(name or "text", format_of(name, format, reading), content)


def _of_documents(name: str, format: Format, content: bytes) -> SourceText:
    documents: List[Document] = list(format.documents(io.BytesIO(content), name))
    lines = [line for document in documents for line in document.lines]
    numbered = all(document.first_line is not None for document in documents)

    def finish(found: Sequence[TranslatedLine]) -> bytes:
        rest = iter(found)
        translations = ([line.text for line in islice(rest, len(document.lines))] for document in documents)
        return b"".join(document.finish(own) for document, own in zip(documents, translations))

    empty_ends = format.reading.empty_lines == "document"
    return SourceText(name, lines, places_of(lines, empty_ends), finish, numbered)


def places_of(lines: Sequence[str], empty_ends: bool) -> List[Optional[Place]]:
    """The places of delimited lines.

    Args:
        lines: sentences and marks.
        empty_ends: whether an empty line ends the document, or only a paragraph.
    """
    places: List[Optional[Place]] = []
    document = paragraph = sentence = 0
    for line in lines:
        text = normalise(line)
        if not is_boundary(text):
            places.append(Place(document, paragraph, sentence))
            sentence += 1
            continue
        places.append(None)
        if text == DOCUMENT and empty_ends:
            if paragraph or sentence:
                document, paragraph, sentence = document + 1, 0, 0
        elif sentence:
            paragraph, sentence = paragraph + 1, 0
    return places


def _plain(found: Sequence[TranslatedLine]) -> bytes:
    return "".join(f"{line.text}\n" for line in found).encode()

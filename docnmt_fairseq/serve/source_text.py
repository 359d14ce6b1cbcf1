"""Text of a request as lines for the translator, and the reconstruction of its answer."""

import io
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH, is_boundary
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import Reading, format_of
from docnmt_fairseq.translate.lines import TranslatedLine


class Place(NamedTuple):
    """Position of a sentence in a request: indices of document, paragraph and sentence."""

    document: int
    paragraph: int
    sentence: int


@dataclass(frozen=True)
class SourceText:
    """Text of a request."""

    name: str  # in messages
    lines: List[str]  # sentences and marks
    places: List[Optional[Place]]  # place of each sentence, None for marks
    finish: Callable[[Sequence[TranslatedLine]], bytes] = lambda lines: b""  # returns the translated file
    numbered: bool = False  # line numbers are those of the client's text
    line_inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lines by name of LINE_INPUTS

    def paragraphs(self, values: Sequence[Any]) -> List[List[Any]]:
        """Returns those of the values per line that belong to sentences, by paragraph."""
        found: Dict[Tuple[int, int], List[Any]] = {}
        for place, value in zip(self.places, values):
            if place is not None:
                found.setdefault((place.document, place.paragraph), []).append(value)
        return list(found.values())

    def message(self, error: InputError) -> str:
        """Returns the message of an error; that of a line with its place in the request."""
        if error.place is None:
            return str(error)
        _, number, message = error.place
        place = self.places[number - 1]
        if self.numbered or place is None:
            return f"{self.name}, line {number}: {message}"
        where = f"paragraph {place.paragraph + 1}, sentence {place.sentence + 1}"
        return f"{self.name}, {where} ({self.lines[number - 1][:40]!r}): {message}"

    def check_lengths(self, max_characters: int) -> None:
        """Raises :class:`InputError` for a sentence or line input with more characters."""
        for name, lines in {"sentence": self.lines, **self.line_inputs}.items():
            for number, line in enumerate(lines, start=1):
                if len(line) > max_characters:
                    message = f"{name} of {len(line):,} characters, but at most {max_characters:,} are accepted"
                    raise InputError.at(self.name, number, message)


def from_paragraphs(
    paragraphs: Sequence[Sequence[str]], line_inputs: Mapping[str, Sequence[Sequence[str]]] = MappingProxyType({})
) -> SourceText:
    """Returns the text of paragraphs; sentences without visible characters are left out.

    Args:
        paragraphs: sentences of each paragraph.
        line_inputs: line inputs in the same shape.
    """
    lines: List[str] = []
    places: List[Optional[Place]] = []
    aligned: Dict[str, List[str]] = {name: [] for name in line_inputs}
    for p, sentences in enumerate(paragraphs):
        visible = [s for s, sentence in enumerate(sentences) if not is_boundary(normalise(sentence))]
        if visible and lines:
            lines.append(PARAGRAPH)
            places.append(None)
            for values in aligned.values():
                values.append("")
        lines += [sentences[s] for s in visible]
        places += [Place(0, p, s) for s in visible]
        for name, values in aligned.items():
            values += [line_inputs[name][p][s] for s in visible]
    return SourceText("paragraphs", lines, places, line_inputs=aligned)


def to_shape(paragraphs: Sequence[Sequence[str]], source: SourceText, texts: Sequence[str]) -> List[List[str]]:
    """Returns translations in the shape of the paragraphs of :func:`from_paragraphs`, empty for empty sentences."""
    shape = [["" for _ in sentences] for sentences in paragraphs]
    for place, text in zip(source.places, texts):
        if place is not None:
            shape[place.paragraph][place.sentence] = text
    return shape


def from_file(content: bytes, name: str, format_name: str, reading: Reading) -> SourceText:
    """Returns the text of a file of any format.

    Args:
        content: content of the file.
        name: name of the file in messages; its ending is the format if there is no ``format_name``.
        format_name: format; empty: that of the name, or text with one sentence per line.
        reading: settings of formats.

    Raises:
        InputError: unknown format; the content is not of its format, or exceeds the limits.
    """
    documents = list(format_of(name, format_name, reading).documents(io.BytesIO(content), name or "text"))
    lines = [line for document in documents for line in document.lines]
    numbered = all(document.first_line is not None for document in documents)

    def finish(translated: Sequence[TranslatedLine]) -> bytes:
        rest = iter(translated)
        texts = ([line.text for line in islice(rest, len(document.lines))] for document in documents)
        return b"".join(document.finish(own) for document, own in zip(documents, texts))

    places = places_of(lines, reading.empty_lines == "document")
    return SourceText(name or "text", lines, places, finish, numbered)


def places_of(lines: Sequence[str], empty_line_ends_document: bool) -> List[Optional[Place]]:
    """Returns the places of sentences among marks."""
    places: List[Optional[Place]] = []
    document = paragraph = sentence = 0
    for line in lines:
        text = normalise(line)
        if not is_boundary(text):
            places.append(Place(document, paragraph, sentence))
            sentence += 1
            continue
        places.append(None)
        if text == DOCUMENT and empty_line_ends_document:
            if paragraph or sentence:
                document, paragraph, sentence = document + 1, 0, 0
        elif sentence:
            paragraph, sentence = paragraph + 1, 0
    return places

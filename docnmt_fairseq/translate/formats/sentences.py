"""Units divided into sentences for a translator, and translations laid back into the pieces of the units."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.marks import PARAGRAPH, is_mark
from docnmt_fairseq.translate.formats.laying import CLOSING, lay
from docnmt_fairseq.translate.formats.units import Gap, Span, Unit

Split = Callable[[str], List[str]]  # text to sentences, which one after the other are the text

LONGEST = 6  # subtitles that a sentence may go over; where nothing ends it, the last of them does


@dataclass(frozen=True)
class Sentence:
    """A sentence of a unit: where it is in the unit's text, and what the model gets of it."""

    start: int
    end: int
    shown: str


class Division:
    """The sentences of a document, and the way back.

    Args:
        units: of the document.
        split: divides text into sentences.
        check: is told their number as it grows, and raises an error where there are too many.

    Attributes:
        lines: a sentence a line, :data:`PARAGRAPH` between paragraphs. What has no letter is not among them: it stays
            as it is.
    """

    def __init__(self, units: Sequence[Unit], split: Split, check: Callable[[int], None] = lambda found: None):
        self.units = units
        self.lines: List[str] = []
        self._sentences: List[List[Sentence]] = []
        found = 0
        for unit in units:
            sentences: List[Sentence] = []
            for sentence in _sentences(unit, split):
                sentences.append(sentence)
                found += 1
                check(found)
            self._sentences.append(sentences)
            if unit.new_paragraph and sentences and self.lines and self.lines[-1] != PARAGRAPH:
                self.lines.append(PARAGRAPH)
            self.lines += [sentence.shown for sentence in sentences]

    def restore(self, translations: Sequence[str]) -> List[Optional[List[str]]]:
        """The pieces of each unit; None for one that stays as it was.

        Args:
            translations: a line for each of ``lines``.
        """
        found = (text for text, line in zip(translations, self.lines) if line != PARAGRAPH)
        return [_restored(unit, own, [next(found) for _ in own]) for unit, own in zip(self.units, self._sentences)]


def _text_of(unit: Unit) -> Tuple[str, List[Span]]:
    """A unit's text, and where its pieces are in it."""
    lengths = [len(piece) for piece in unit.pieces]
    joints = [1 if gap is Gap.PART else 0 for gap in unit.gaps]
    starts = list(accumulate((length + joint for length, joint in zip(lengths, joints)), initial=0))
    text = "".join(piece + " " * joint for piece, joint in zip(unit.pieces, [*joints, 0]))
    return text, [(start, start + length) for start, length in zip(starts, lengths)]


def _sentences(unit: Unit, split: Split) -> Iterator[Sentence]:
    text, spans = _text_of(unit)
    if not any(map(str.isalpha, text)):
        return
    parts = [spans[number + 1][0] for number, gap in enumerate(unit.gaps) if gap is Gap.PART]
    readable = _readable(text, spans, unit)
    for start, end in _limited(_spans(text, split), parts):
        while start < end and not readable[start].strip():
            start += 1
        while start < end and not readable[end - 1].strip():
            end -= 1
        shown = normalise("".join(readable[start:end]))
        if any(map(str.isalpha, shown)) and not is_mark(shown):
            yield Sentence(start, end, shown)


def _readable(text: str, spans: Sequence[Span], unit: Unit) -> List[str]:
    """The characters that the model is shown: "" for what belongs to an object, or would stand alone without it."""
    characters = list(text)
    if Gap.OBJECT not in unit.gaps:
        return characters
    for (start, end), (first, last), gap in zip(spans, unit.cores(), [None, *unit.gaps]):
        for place in (*range(start, start + first), *range(start + last, end)):
            characters[place] = " " if text[place].isspace() else ""
        if gap is Gap.OBJECT and start and first < last and text[start + first] in CLOSING:
            characters[start - 1] = characters[start - 1].strip()
    return characters


def _spans(text: str, split: Split) -> Iterator[Span]:
    """Where the sentences of a text are, without the white space around them."""
    # What the library is shown has a space for each white space, so that line ends and tabs end no sentence.
    shown = "".join(" " if character.isspace() else character for character in text)
    sentences = split(shown)
    end = 0
    for sentence in sentences if "".join(sentences) == shown else [shown]:
        start, end = end, end + len(sentence)
        first = start + len(sentence) - len(sentence.lstrip())
        last = start + len(sentence.rstrip())
        if first < last:
            yield first, last


def _limited(spans: Iterator[Span], parts: Sequence[int]) -> Iterator[Span]:
    """The spans, those divided that go over more parts than a sentence may.

    Args:
        spans: of sentences.
        parts: where a part begins that could be one by itself.
    """
    for start, end in spans:
        inner = [part for part in parts if start < part < end]
        for part in inner[LONGEST - 1 :: LONGEST]:
            yield start, part - 1
            start = part
        yield start, end


def _restored(unit: Unit, sentences: Sequence[Sentence], translations: Sequence[str]) -> Optional[List[str]]:
    if all(translation == sentence.shown for translation, sentence in zip(translations, sentences)):
        return None
    text, spans = _text_of(unit)
    starts = [start for start, _ in spans]
    pieces = ["" for _ in unit.pieces]
    behind = 0
    for sentence, translation in zip(sentences, translations):
        _copy(text, spans, starts, behind, sentence.start, pieces)
        behind = sentence.end
        if translation == sentence.shown:
            _copy(text, spans, starts, sentence.start, sentence.end, pieces)
            continue
        first, last = _pieces_of(starts, sentence.start, sentence.end)
        own = [text[max(sentence.start, a) : min(sentence.end, b)] for a, b in spans[first : last + 1]]
        for number, laid in enumerate(lay(translation, own, unit.gaps[first:last]), first):
            pieces[number] += laid
    _copy(text, spans, starts, behind, len(text), pieces)
    return pieces


def _pieces_of(starts: Sequence[int], start: int, end: int) -> Tuple[int, int]:
    """The first and the last piece of a stretch of text that is not empty."""
    return max(bisect_right(starts, start) - 1, 0), bisect_right(starts, end - 1) - 1


def _copy(text: str, spans: Sequence[Span], starts: Sequence[int], start: int, end: int, pieces: List[str]) -> None:
    """Adds a stretch of text to the pieces that it is of."""
    if start < end:
        first, last = _pieces_of(starts, start, end)
        for number in range(first, last + 1):
            pieces[number] += text[max(start, spans[number][0]) : min(end, spans[number][1])]

"""Segments of text with markup: their division into sentences for the translator, and their translated pieces.

A segment is pieces of text with gaps between them: tags, line ends, the next subtitle. The model never sees what is in
a gap. A translation has as many pieces as the original, so every gap occurs once, in the same order, and tags stay
paired and nested. Punctuation between an object and white space belongs to the object, unless it may end a sentence.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from docnmt_fairseq.boundaries import PARAGRAPH, is_boundary
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.translate.formats.markup_projection import CLOSING, HAN, Gap, Span, cores_of, project

Split = Callable[[str], List[str]]  # text to sentences, whose concatenation is the text

FULL_STOPS = ("\u3002", "\uff01", "\uff1f")  # not followed by a space
ENDS_CLAUSE = tuple(".,:;!?")
MAX_CUES = 6  # subtitles of a sentence; without end punctuation, the last of them ends it


@dataclass(frozen=True)
class Segment:
    """Text that is translated independently: a paragraph, heading, cell, run of subtitles."""

    pieces: List[str]  # text between the gaps
    gaps: List[Gap] = field(default_factory=list)  # one fewer than pieces
    new_paragraph: bool = True  # a paragraph starts with it

    def text(self) -> Tuple[str, List[Span]]:
        """Returns the whole text, and the spans of the pieces in it."""
        joints = [1 if gap is Gap.PART else 0 for gap in self.gaps] + [0]
        starts = list(accumulate((len(piece) + joint for piece, joint in zip(self.pieces, joints)), initial=0))
        text = "".join(piece + " " * joint for piece, joint in zip(self.pieces, joints))
        return text, [(start, start + len(piece)) for start, piece in zip(starts, self.pieces)]


class Sentence(NamedTuple):
    """Span of a sentence in the text of its segment, and the text that the model sees."""

    start: int
    end: int
    shown: str


class Segmentation:
    """Sentences of a document, and their translations as pieces of segments.

    Args:
        segments: segments of the document.
        split: sentence splitter.
        check: called with the growing number of sentences; raises an error if there are too many.

    Attributes:
        lines: a sentence per line, :data:`PARAGRAPH` between paragraphs. Sentences without a letter are left out: they
            are not translated.
    """

    def __init__(self, segments: Sequence[Segment], split: Split, check: Callable[[int], None] = lambda found: None):
        self.segments = segments
        self.lines: List[str] = []
        self._sentences: List[List[Sentence]] = []
        found = 0
        for segment in segments:
            sentences: List[Sentence] = []
            for sentence in _sentences(segment, split):
                sentences.append(sentence)
                found += 1
                check(found)
            self._sentences.append(sentences)
            if segment.new_paragraph and sentences and self.lines and self.lines[-1] != PARAGRAPH:
                self.lines.append(PARAGRAPH)
            self.lines += [sentence.shown for sentence in sentences]

    def restore(self, translations: Sequence[str]) -> List[Optional[List[str]]]:
        """Returns the new pieces of each segment; None for an unchanged one.

        Args:
            translations: a line for each of ``lines``.
        """
        found = (text for text, line in zip(translations, self.lines) if line != PARAGRAPH)
        return [_restored(one, own, [next(found) for _ in own]) for one, own in zip(self.segments, self._sentences)]


def _sentences(segment: Segment, split: Split) -> Iterator[Sentence]:
    text, spans = segment.text()
    if not any(map(str.isalpha, text)):
        return
    parts = [spans[number + 1][0] for number, gap in enumerate(segment.gaps) if gap is Gap.PART]
    readable = _readable(text, spans, segment)
    listed = _listed(text, spans, segment.gaps)
    for start, end in listed or _limited(_spans(text, split), parts):
        while start < end and not readable[start].strip():
            start += 1
        while start < end and not readable[end - 1].strip():
            end -= 1
        shown = normalise("".join(readable[start:end]))
        if any(map(str.isalpha, shown)) and not is_boundary(shown):
            yield Sentence(start, end, shown)


def _readable(text: str, spans: Sequence[Span], segment: Segment) -> List[str]:
    """Returns the characters that the model sees: "" for those of objects, and for spaces that objects leave.

    A space is added between a punctuation mark and a word in another element: ``<b>Note:</b>The house``.
    """
    characters = list(text)
    for start, _ in spans[1:]:
        if text[max(start - 1, 0) : start] in ENDS_CLAUSE and text[start : start + 1].isalpha():
            characters[start - 1] += " "
    if Gap.OBJECT not in segment.gaps:
        return characters
    cores = cores_of(segment.pieces, segment.gaps)
    behind_object = False
    for (start, end), (first, last), gap in zip(spans, cores, [None, *segment.gaps]):
        for place in (*range(start, start + first), *range(start + last, end)):
            characters[place] = " " if text[place].isspace() else ""
        behind_object = behind_object or gap is Gap.OBJECT
        if first < last:
            if behind_object:
                _join(characters, start + first)
            behind_object = False
    return characters


def _join(characters: List[str], place: int) -> None:
    """Removes white space before closing punctuation after an object, and separates words."""
    before = place - 1
    while before >= 0 and not characters[before].strip():
        before -= 1
    if characters[place] in CLOSING:
        characters[before + 1 : place] = [""] * (place - before - 1)
    elif before >= 0 and not any(characters[before + 1 : place]):
        last = characters[before][-1]
        if last.isalnum() and not (HAN.match(last) and HAN.match(characters[place])):
            characters[before] += " "


def _spans(text: str, split: Split) -> Iterator[Span]:
    """Yields the spans of the sentences of a text without surrounding white space."""
    # Line ends and tabs are shown as spaces, so they end no sentence.
    shown = "".join(" " if character.isspace() else character for character in text)
    sentences = split(shown)
    end = 0
    for sentence in sentences if "".join(sentences) == shown else [shown]:
        start, end = end, end + len(sentence)
        first = start + len(sentence) - len(sentence.lstrip())
        last = start + len(sentence.rstrip())
        if first < last:
            yield first, last


def _listed(text: str, spans: Sequence[Span], gaps: Sequence[Gap]) -> List[Span]:
    """Returns the elements of a text without words between them, as of a list of links; [] for other texts."""
    found: List[Span] = []
    depth, behind, separated = 0, 0, True
    for (start, end), gap in zip(spans, [None, *gaps]):
        if gap is Gap.OPEN:
            found += [(start, start)] if not depth else []
            separated = separated and (bool(depth) or len(found) == 1 or bool(text[behind:start].strip()))
            depth += 1
        elif gap is Gap.CLOSE and depth:
            depth -= 1
            behind = start
        if not depth and any(map(str.isalpha, text[start:end])):
            return []
        if depth:
            found[-1] = (found[-1][0], end)
    return found if depth == 0 and len(found) > (1 if separated else 2) else []


def _limited(spans: Iterator[Span], parts: Sequence[int]) -> Iterator[Span]:
    """Divides spans with more than :data:`MAX_CUES` parts.

    Args:
        spans: spans of sentences.
        parts: start of each part.
    """
    for start, end in spans:
        inner = [part for part in parts if start < part < end]
        for part in inner[MAX_CUES - 1 :: MAX_CUES]:
            yield start, part - 1
            start = part
        yield start, end


def _restored(segment: Segment, sentences: Sequence[Sentence], translations: Sequence[str]) -> Optional[List[str]]:
    if all(translation == sentence.shown for translation, sentence in zip(translations, sentences)):
        return None
    text, spans = segment.text()
    starts = [start for start, _ in spans]
    pieces = ["" for _ in segment.pieces]

    def follows_line_end(number: int) -> bool:
        return number == 0 or segment.gaps[number - 1] in (Gap.LINE, Gap.PART)

    def add(start: int, end: int, translation: Optional[str] = None) -> None:
        """Appends a span of the text, or its translation, to the pieces; no line starts with a space that it lacked."""
        if start == end:
            return
        first, last = max(bisect_right(starts, start) - 1, 0), bisect_right(starts, end - 1) - 1
        own = [text[max(start, a) : min(end, b)] for a, b in spans[first : last + 1]]
        if translation is not None:
            own = project(translation, own, segment.gaps[first:last])
        elif text[start:end].isspace() and start > starts[first] and not pieces[first] and follows_line_end(first):
            return
        for number, piece in enumerate(own, first):
            pieces[number] += piece

    behind, before = 0, ""
    for sentence, translation in zip(sentences, translations):
        add(behind, sentence.start)
        touches = 0 < behind == sentence.start and text[behind - 1] in FULL_STOPS
        if touches and before and before[-1] not in FULL_STOPS and not HAN.match(translation):
            pieces[bisect_right(starts, behind - 1) - 1] += " "
        before = translation
        add(sentence.start, sentence.end, None if translation == sentence.shown else translation)
        behind = sentence.end
    add(behind, len(text))
    return pieces

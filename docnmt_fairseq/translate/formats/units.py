"""Units of text with markup in them.

A unit is pieces of text with gaps between them: a tag, a line end, the next subtitle. What stands in a gap is the
format's affair and is never shown to the model. A translation has as many pieces as the original, so that each gap is
there once, in the same order: tags stay paired and nested. Punctuation between an object and white space belongs to the
object, unless it may end a sentence: it is not shown either, and stays.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Iterator, List, Sequence, Tuple

Span = Tuple[int, int]


class Gap(Enum):
    """What is between two pieces, and what white space does there."""

    OPEN = "the beginning of marked text: white space stands before it"
    CLOSE = "the end of marked text: white space stands after it"
    OBJECT = "something by itself: the white space around it stays"
    LINE = "a line end, which the white space holds: goes with it where no word is left on a side"
    PART = "a place that parts words without white space, as between two subtitles"


@dataclass(frozen=True)
class Unit:
    """Text that is translated for itself: a paragraph, heading, cell, run of subtitles.

    Attributes:
        pieces: the text between the gaps.
        gaps: one fewer than pieces.
        new_paragraph: whether a paragraph begins with it.
    """

    pieces: List[str]
    gaps: List[Gap] = field(default_factory=list)
    new_paragraph: bool = True

    def cores(self) -> Iterator[Span]:
        """Where in each piece its text is, without the white space around it and the punctuation of objects."""
        return cores_of(self.pieces, self.gaps)


HEAD = re.compile(r"[^\w\s.!?\u2026\u3002\uff01\uff1f]+(?!\S)")  # punctuation behind an object
TAIL = re.compile(r"(?<!\S)[^\w\s]+$")  # and before it


def cores_of(pieces: Sequence[str], gaps: Sequence[Gap]) -> Iterator[Span]:
    """Where in each piece its text is; see :meth:`Unit.cores`."""
    for piece, before, after in zip(pieces, [None, *gaps], [*gaps, None]):
        start, end = 0, len(piece)
        head = HEAD.match(piece) if before is Gap.OBJECT else None
        start = head.end() if head else 0
        tail = TAIL.search(piece, start) if after is Gap.OBJECT else None
        end = tail.start() if tail else len(piece)
        core = piece[start:end]
        start += len(core) - len(core.lstrip())
        yield start, start + len(core.strip())

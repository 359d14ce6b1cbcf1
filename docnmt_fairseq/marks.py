"""The lines of delimited text that are no sentences; everything that reads or writes documents agrees on them here.

A line of several ``<p>`` ends as many levels of structure at once: ``<p>`` a paragraph, ``<p> <p>`` a section with its
last paragraph, and so on. So levels need no symbols of their own, in dictionaries or anywhere.
"""

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from fairseq.data import Dictionary

PARAGRAPH = "<p>"  # ends a paragraph; a symbol of every dictionary
DOCUMENT = ""  # ends a document
LEVELS = ("paragraph", "section", "chapter", "part")  # of structure between sentence and document, the innermost first
MOST_LEVELS = len(LEVELS)


def boundary(levels: int) -> str:
    """The mark that ends so many levels of structure."""
    return " ".join([PARAGRAPH] * levels)


BOUNDARIES = {boundary(levels): levels for levels in range(1, MOST_LEVELS + 1)}


def levels_ended(line: str) -> int:
    """How many levels of structure a line, white space around it removed, ends: 0 for a sentence, and for the end of
    a document."""
    return BOUNDARIES.get(line, 0)


def is_mark(line: str) -> bool:
    """Whether a line, white space around it removed, is a boundary and no sentence."""
    return line == DOCUMENT or line in BOUNDARIES


def paragraph_symbol(dictionary: "Dictionary") -> Optional[int]:
    """The number of ``<p>`` in a dictionary, None if it is not there."""
    return dictionary.indices.get(PARAGRAPH)

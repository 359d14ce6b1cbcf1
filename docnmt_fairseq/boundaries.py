"""Boundaries of documents in delimited text.

An empty line ends a document. A line of several ``<p>`` ends as many levels of structure at once: ``<p>`` a paragraph,
``<p> <p>`` a section with its last paragraph, and so on, so that dictionaries need only one symbol.
"""

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from fairseq.data import Dictionary

PARAGRAPH = "<p>"  # end of a paragraph; a symbol of every dictionary
DOCUMENT = ""  # end of a document
LEVELS = ("paragraph", "section", "chapter", "part")  # of structure between sentence and document, innermost first
MAX_LEVELS = len(LEVELS)


def boundary(levels: int) -> str:
    """Line that ends a number of levels."""
    return " ".join([PARAGRAPH] * levels)


BOUNDARIES = {boundary(levels): levels for levels in range(1, MAX_LEVELS + 1)}


def levels_ended(line: str) -> int:
    """Number of levels that a stripped line ends; 0 for a sentence and for the end of a document."""
    return BOUNDARIES.get(line, 0)


def is_boundary(line: str) -> bool:
    """Returns whether a stripped line is a boundary."""
    return line == DOCUMENT or line in BOUNDARIES


def paragraph_symbol(dictionary: "Dictionary") -> Optional[int]:
    """Index of ``<p>`` in a dictionary, None if missing."""
    return dictionary.indices.get(PARAGRAPH)

"""Translated lines, and the origin of input lines."""

import hashlib
from dataclasses import dataclass
from typing import List

from docnmt_fairseq.boundaries import DOCUMENT, levels_ended
from docnmt_fairseq.corpus.text import normalise

EMPTY_LINES = ("document", "paragraph")  # what an empty line ends


class Origin(str):
    """Name of consecutive lines in messages, with their position in a file, on which sampling depends."""

    file: str  # name of the file within the request, independent of its folder
    file_hash: int  # its hash, 64 bits
    line: int  # number of lines of the file before these

    def __new__(cls, name: str, file: str, line: int) -> "Origin":
        """Returns the origin of lines."""
        origin = super().__new__(cls, name)
        origin.file, origin.line = file, line
        digest = hashlib.sha256(file.encode("utf-8", "surrogateescape")).digest()
        origin.file_hash = int.from_bytes(digest[:8], "big")
        return origin


@dataclass(frozen=True)
class Translation:
    """Translation of a sentence."""

    text: str  # plain text
    score: float  # of the search: the mean log-probability of the tokens, unless options change it


@dataclass(frozen=True)
class TranslatedLine:
    """Translation of a line."""

    text: str  # best translation; for an empty line or ``<p>``, the line itself
    translations: List[Translation]  # n-best list, best first; empty for a line that is not a sentence


def translated_line(line: str, translations: List[Translation]) -> TranslatedLine:
    """Returns the translated line; a line without translations is a boundary and stays."""
    if translations:
        return TranslatedLine(translations[0].text, translations)
    mark = normalise(line)
    return TranslatedLine(mark if levels_ended(mark) else DOCUMENT, [])

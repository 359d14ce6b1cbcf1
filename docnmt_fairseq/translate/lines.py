"""Translated lines and the origin of input lines."""

import hashlib
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from docnmt_fairseq.boundaries import DOCUMENT, levels_ended
from docnmt_fairseq.corpus.text import normalise


class Origin(str):
    """Name of consecutive lines of a file in messages, with their position. Compared by identity in errors.

    Attributes:
        file: identifies the file within the request, independently of its folder.
        line: number of lines of the file before these.
    """

    file: str
    line: int

    @classmethod
    def of(cls, name: str, file: str, line: int) -> "Origin":
        """Returns the origin of lines."""
        origin = cls(name)
        origin.file, origin.line = file, line
        return origin

    @property
    def file_key(self) -> int:
        """Number derived from the file, for sampling."""
        return int.from_bytes(hashlib.sha256(self.file.encode("utf-8", "surrogateescape")).digest()[:8], "big")


@dataclass(frozen=True)
class Translation:
    """Translation of a sentence.

    Attributes:
        text: plain text.
        score: score of the search: the mean log-probability of the tokens, unless options change it.
    """

    text: str
    score: float


@dataclass(frozen=True)
class TranslatedLine:
    """Translation of a line.

    Attributes:
        text: best translation; for an empty line or ``<p>``, the line itself.
        translations: n-best list, best first; empty for a line that is not a sentence.
    """

    text: str
    translations: List[Translation]


def sampling_keys(
    starts: Sequence[int], documents: Sequence[Sequence[str]], names: Sequence[str]
) -> Dict[int, Tuple[int, int]]:
    """Returns by line number what sampling depends on: file and line, whatever is translated in the same batch.

    Args:
        starts: number of the first line of each document.
        documents: lines of each document.
        names: names of the documents; those that are not an :class:`Origin` have no keys.
    """
    found = {}
    for start, lines, origin in zip(starts, documents, names):
        if isinstance(origin, Origin):
            key = origin.file_key
            found.update({start + line: (key, origin.line + line) for line in range(len(lines))})
    return found


def translated_line(line: str, translations: List[Translation]) -> TranslatedLine:
    """Returns the translated line; a line without translations is a boundary and stays."""
    if translations:
        return TranslatedLine(translations[0].text, translations)
    mark = normalise(line)
    return TranslatedLine(mark if levels_ended(mark) else DOCUMENT, [])

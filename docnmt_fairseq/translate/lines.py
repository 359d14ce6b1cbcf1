"""Where the lines of a text come from, and what a translator gives for every one."""

import hashlib
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.marks import DOCUMENT, levels_ended


class Origin(str):
    """What messages call some lines of a file, which also knows where they stand.

    Each is an object of its own, so that an error leads back to its lines.

    Attributes:
        file: tells the file from others that are translated with it, in whatever folder they lie.
        line: how many lines of the file stand before.
    """

    file: str
    line: int

    @classmethod
    def of(cls, name: str, file: str, line: int) -> "Origin":
        """The origin of lines."""
        origin = cls(name)
        origin.file, origin.line = file, line
        return origin

    @property
    def number(self) -> int:
        """A number that stands for the file."""
        return int.from_bytes(hashlib.sha256(self.file.encode("utf-8", "surrogateescape")).digest()[:8], "big")


@dataclass(frozen=True)
class Translation:
    """One translation of a sentence.

    Attributes:
        text: plain.
        score: by which the search ranks it: the mean log-probability of its tokens, unless options say otherwise.
    """

    text: str
    score: float


@dataclass(frozen=True)
class TranslatedLine:
    """What becomes of a line.

    Attributes:
        text: the best translation; of an empty line or ``<p>`` that line.
        translations: the best first; none of a line that is no sentence.
    """

    text: str
    translations: List[Translation]


def draw_keys(
    starts: Sequence[int], documents: Sequence[Sequence[str]], names: Sequence[str]
) -> Dict[int, Tuple[int, int]]:
    """By their numbers, what the draws of lines depend on whose origin is known: it, whatever is translated with them.

    Args:
        starts: of each document, the number of its first line.
        documents: a sentence a line.
        names: of the documents.
    """
    found = {}
    for start, lines, origin in zip(starts, documents, names):
        if isinstance(origin, Origin):
            file = origin.number
            found.update({start + line: (file, origin.line + line) for line in range(len(lines))})
    return found


def translated_line(line: str, translations: List[Translation]) -> TranslatedLine:
    """What becomes of a line; one without translations is no sentence, and stays."""
    if translations:
        return TranslatedLine(translations[0].text, translations)
    mark = normalise(line)
    return TranslatedLine(mark if levels_ended(mark) else DOCUMENT, [])

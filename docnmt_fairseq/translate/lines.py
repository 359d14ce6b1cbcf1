"""What a translator gives for every line of a text."""

from dataclasses import dataclass
from typing import List

from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.marks import DOCUMENT, levels_ended


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


def translated_line(line: str, translations: List[Translation]) -> TranslatedLine:
    """What becomes of a line; one without translations is no sentence, and stays."""
    if translations:
        return TranslatedLine(translations[0].text, translations)
    mark = normalise(line)
    return TranslatedLine(mark if levels_ended(mark) else DOCUMENT, [])

"""Running text: paragraphs of sentences, which stay paragraphs of as many lines."""

import re
from typing import List, Optional, Tuple

from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.limits import LINES
from docnmt_fairseq.translate.formats.units import Gap, Unit

LINE = re.compile(r"[^\n]*\n|[^\n]+")


@register("running")
class Running(WholeFile):
    """Text whose sentences go on over line ends, or stand several in a line."""

    help = "running text, divided into sentences; --split says what a paragraph is"

    def parse(self, content: bytes, name: str) -> Parsed:
        """See :class:`WholeFile`."""
        lines = LINE.findall(decode(content, name))
        self.reading.limits.check(len(lines), "lines", name, LINES)
        paragraphs: List[Tuple[bool, List[str]]] = []  # whether one has text, and its lines
        for line in lines:
            has_text = bool(line.strip())
            if not paragraphs or self.reading.split == "lines" or paragraphs[-1][0] != has_text:
                paragraphs.append((has_text, []))
            paragraphs[-1][1].append(line)
        units = [Unit(own, [Gap.LINE] * (len(own) - 1)) for _, own in paragraphs]

        def render(pieces: List[Optional[List[str]]]) -> bytes:
            found = (own if new is None else new for (_, own), new in zip(paragraphs, pieces))
            return "".join("".join(own) for own in found).encode()

        return Parsed(units, render)

"""Running text: paragraphs, which keep their number of lines."""

import re
from typing import List, Optional, Tuple

from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.limits import LINES
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.segments import Segment

LINE = re.compile(r"[^\n]*\n|[^\n]+")


@register("running")
class Running(WholeFile):
    """Text with sentences over line ends, or several per line."""

    help = "running text, split into sentences; --split defines paragraphs"

    def parse(self, content: bytes, name: str) -> Parsed:
        """Parses a file."""
        lines = LINE.findall(decode(content, name))
        self.reading.limits.check(len(lines), "lines", name, LINES)
        paragraphs: List[Tuple[bool, List[str]]] = []  # has text, lines
        for line in lines:
            has_text = bool(line.strip())
            if not paragraphs or self.reading.split == "lines" or paragraphs[-1][0] != has_text:
                paragraphs.append((has_text, []))
            paragraphs[-1][1].append(line)
        segments = [Segment(own, [Gap.LINE] * (len(own) - 1)) for _, own in paragraphs]

        def render(pieces: List[Optional[List[str]]]) -> bytes:
            found = (own if new is None else new for (_, own), new in zip(paragraphs, pieces))
            return "".join("".join(own) for own in found).encode()

        return Parsed(segments, render)

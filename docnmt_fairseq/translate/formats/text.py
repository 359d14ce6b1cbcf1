"""Plain text: a sentence per line, streamed by document; or running text, split into sentences."""

import logging
from functools import partial
from typing import BinaryIO, Iterator, List, Sequence, Tuple

from docnmt_fairseq.corpus.files import lines_of
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.translate.formats.base import LINE, Document, Format, Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.segments import Segment

LONG = 100  # lines after which a document is divided if sentences are translated without context
LINES_PER_SENTENCE = 4

logger = logging.getLogger(__name__)


@register("text")
class Text(Format):
    """Text with a sentence per line; an empty line ends a document.

    If sentences are translated without context, long documents are divided, so that they can be streamed and resumed.
    """

    help = "a sentence per line; an empty line ends a document, <p> a paragraph (<p> <p>: section); streamed"
    warned = 0  # last line with a warning

    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        whole = self.reading.empty_lines == "paragraph"
        lines: List[str] = []
        first = 1
        ended = False
        for number, line in enumerate(lines_of(stream, name), start=1):
            if line and not (line.isascii() and line.isprintable()) and not normalise(line):
                self._warn(name, number)
                line = ""
            if line and (ended or (len(lines) >= LONG and self.reading.alone())):
                yield Document(lines, partial(_joined, lines), first)
                lines, first, ended = [], number, False
            lines.append(line)
            ended = not line and not whole
        if lines:
            yield Document(lines, partial(_joined, lines), first)

    def _warn(self, name: str, number: int) -> None:
        """Warns once per line, however often the file is read."""
        if number > self.warned:
            logger.warning(f"{name}:{number}: has no visible characters, read as an empty line")
            self.warned = number


def _joined(lines: Sequence[str], translations: Sequence[str]) -> bytes:
    """Returns the translations; lines without a letter stay."""
    new = (text if not line or any(map(str.isalpha, line)) else line for line, text in zip(lines, translations))
    return "".join(f"{line}\n" for line in new).encode("utf-8", "surrogatepass")


@register("running")
class Running(WholeFile):
    """Text with sentences over line ends, or several per line; paragraphs keep their number of lines."""

    help = "running text, split into sentences; --split defines paragraphs"

    def parse(self, content: bytes, name: str) -> Parsed:
        lines = LINE.findall(decode(content, name))
        self.reading.limits.check(len(lines), "lines", name, LINES_PER_SENTENCE)
        paragraphs: List[Tuple[bool, List[str]]] = []  # has text, lines
        for line in lines:
            has_text = bool(line.strip())
            if not paragraphs or self.reading.split == "lines" or paragraphs[-1][0] != has_text:
                paragraphs.append((has_text, []))
            paragraphs[-1][1].append(line)
        segments = [Segment(own, [Gap.LINE] * (len(own) - 1)) for _, own in paragraphs]

        def render(pieces: List[Pieces]) -> bytes:
            found = (own if new is None else new for (_, own), new in zip(paragraphs, pieces))
            return "".join("".join(own) for own in found).encode()

        return Parsed(segments, render)

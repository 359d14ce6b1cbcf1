"""Plain text with a sentence per line, streamed by document."""

import logging
from typing import BinaryIO, Iterator, List, Sequence

from docnmt_fairseq.corpus.files import lines_of
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.translate.formats.base import Document, Format, register

LONG = 100  # lines after which a document is divided if sentences are translated without context

logger = logging.getLogger(__name__)


@register("text")
class Text(Format):
    """Text with a sentence per line; an empty line ends a document.

    If sentences are translated without context, long documents are divided, so that they can be streamed and resumed.
    """

    help = "a sentence per line; an empty line ends a document, <p> a paragraph (<p> <p>: section); streamed"
    warned = 0  # last line with a warning

    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yields the documents."""
        whole = self.reading.empty_lines == "paragraph"
        lines: List[str] = []
        first = 1
        ended = False
        for number, line in enumerate(lines_of(stream, name), start=1):
            if line and not (line.isascii() and line.isprintable()) and not normalise(line):
                self._warn(name, number)
                line = ""
            if line and (ended or (len(lines) >= LONG and self.reading.alone())):
                yield Document(lines, _joined, first)
                lines, first, ended = [], number, False
            lines.append(line)
            ended = not line and not whole
        if lines:
            yield Document(lines, _joined, first)

    def _warn(self, name: str, number: int) -> None:
        """Warns once per line, however often the file is read."""
        if number > self.warned:
            logger.warning(f"{name}:{number}: has no visible characters, read as an empty line")
            self.warned = number


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")

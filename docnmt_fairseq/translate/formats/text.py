"""Plain text of a sentence a line: read, translated and written document by document."""

import logging
from typing import BinaryIO, Iterator, List, Sequence

from docnmt_fairseq.corpus.files import lines_of
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.translate.formats.base import Document, Format, register

LONG = 100  # lines of a document behind which it is cut where every sentence is translated by itself

logger = logging.getLogger(__name__)


@register("text")
class Text(Format):
    """A sentence a line; the document ends at an empty line, or with the file.

    Where sentences are translated each by itself, it also ends when it is long: so a text without empty lines can be
    translated bit by bit, gone on with, and shared out.
    """

    help = "a sentence a line, an empty line after each document, <p> after a paragraph (<p> <p>: section); bit by bit"
    warned = 0  # the last line that was warned of

    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """See :class:`Format`."""
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
        """Says it once of each line, however often the file is read."""
        if number > self.warned:
            logger.warning(f"{name}:{number}: nothing of this line can be seen: taken as an empty line")
            self.warned = number


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")

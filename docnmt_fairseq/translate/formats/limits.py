"""What a file may hold at most, beside its bytes: small ones can unpack to large ones, and markup takes time."""

from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.errors import InputError


class TooLarge(InputError):
    """A file that holds more than is taken."""


# What is taken for each sentence that may be, by what it takes to read: some seconds in all for 5,000 sentences.
LINES = 4
TAGS_OF_WORD = 100  # end tags with them; Word writes some tens
TAGS_OF_XLIFF = 50
TAGS_OF_HTML = 30
MARKS_OF_MARKDOWN = 20
MESSAGES = 4


@dataclass(frozen=True)
class Limits:
    """What is taken of a file.

    Attributes:
        unpacked: bytes of all members of an archive together.
        sentences: that are to be translated, which limits lines and marks of markup, too; None: any number.
    """

    unpacked: int = 256 * 2**20
    sentences: Optional[int] = None

    def check_unpacked(self, size: int, name: str) -> None:
        """Raises :class:`TooLarge` for an archive of more bytes."""
        if size > self.unpacked:
            most = f"{self.unpacked >> 20} MiB" if self.unpacked >= 1 << 20 else f"{self.unpacked:,} bytes"
            raise TooLarge(f"{name}: larger than {most} unpacked; divide it")

    def check(self, found: int, what: str, name: str, a_sentence: int = 1) -> None:
        """Does nothing where there are not too many of something; called before time is spent on them.

        Args:
            found: their number.
            what: they are, in the plural.
            name: what errors call the file.
            a_sentence: as many are taken for each sentence.

        Raises:
            TooLarge: there are more.
        """
        if self.sentences is not None and found > a_sentence * self.sentences:
            raise TooLarge(f"{name}: more than {a_sentence * self.sentences:,} {what}; divide it")

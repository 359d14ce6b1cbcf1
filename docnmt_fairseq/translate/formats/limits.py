"""Limits on the content of files: small files can unpack to large ones, and markup costs time."""

from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.errors import InputError


class TooLarge(InputError):
    """File that exceeds a limit."""


# Allowed per sentence, by the time to read them: some seconds in total for 5,000 sentences.
LINES = 4
TAGS_OF_WORD = 100  # including end tags; Word writes some tens
TAGS_OF_XLIFF = 50
TAGS_OF_HTML = 30
MARKS_OF_MARKDOWN = 20
MESSAGES = 4


@dataclass(frozen=True)
class FormatLimits:
    """Limits on a file.

    Attributes:
        unpacked: total bytes of the members of an archive.
        sentences: sentences to translate, which also limits lines and tags; None: unlimited.
    """

    unpacked: int = 256 * 2**20
    sentences: Optional[int] = None

    def check_unpacked(self, size: int, name: str) -> None:
        """Raises :class:`TooLarge` for a larger archive."""
        if size > self.unpacked:
            most = f"{self.unpacked >> 20} MiB" if self.unpacked >= 1 << 20 else f"{self.unpacked:,} bytes"
            raise TooLarge(f"{name}: larger than {most} unpacked; divide it")

    def check(self, count: int, what: str, name: str, per_sentence: int = 1) -> None:
        """Checks a number of items before time is spent on them.

        Args:
            count: number of items.
            what: plural noun of the items.
            name: file name in messages.
            per_sentence: allowed items per sentence.

        Raises:
            TooLarge: there are more.
        """
        if self.sentences is not None and count > per_sentence * self.sentences:
            raise TooLarge(f"{name}: more than {per_sentence * self.sentences:,} {what}; divide it")

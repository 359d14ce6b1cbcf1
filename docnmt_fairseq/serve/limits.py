"""What a server takes at most, and what it says to what is more: :class:`Limits` and :class:`Refusal`."""

from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.errors import refuse
from docnmt_fairseq.options import flag_of

LEAST = {"max_waiting": 1, "max_bytes": 1, "max_characters": 1, "max_inspected": 0, "timeout": 0.001, "grace": 0}


@dataclass(frozen=True)
class Limits:
    """Limits of what is taken.

    Attributes:
        max_waiting: sentences that wait for the translator; more are refused with 429.
        max_bytes: of a request; more is refused with 413 without reading the rest.
        max_characters: of a sentence; what has more is refused before it is divided into tokens.
        max_inspected: source tokens of a document that is inspected: weights between all of them are held.
        timeout: seconds that a request may take, from its first byte to its last sentence.
        grace: seconds that requests under way have when the server is told to stop.
    """

    max_waiting: int = 5000
    max_bytes: int = 4 * 2**20
    max_characters: int = 20_000
    max_inspected: int = 1500
    timeout: float = 300.0
    grace: float = 30.0

    def check(self) -> None:
        """Raises :class:`InputError` for what is out of range, all of it."""
        problems = [
            f"{flag_of(name)} {getattr(self, name):g}: at least {least:g}"
            for name, least in LEAST.items()
            if not getattr(self, name) >= least
        ]
        refuse(problems)


class Refusal(Exception):
    """A request that is not answered as it wants.

    Args:
        status: of HTTP.
        message: one sentence that says what is wrong and what to do.
        retry_after: seconds after which it may be tried again.
    """

    def __init__(self, status: int, message: str, retry_after: Optional[int] = None):
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after

"""Limits of requests, their deadlines, and errors that answer them."""

import time
from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.errors import refuse
from docnmt_fairseq.options import flag_of

MINIMUM = {
    "max_waiting": 1, "max_bytes": 1, "max_characters": 1, "max_inspected": 0, "timeout": 0.001, "shutdown_timeout": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes:
        max_waiting: sentences in the queue; more are answered with 429.
        max_bytes: size of a request; larger ones are answered with 413.
        max_characters: length of a sentence, checked before tokenization.
        max_inspected: source tokens of an inspected document, whose weights need quadratic memory.
        timeout: seconds from the first byte of a request to its last sentence.
        shutdown_timeout: seconds that running requests have when the server is stopped.
    """

    max_waiting: int = 5000
    max_bytes: int = 4 * 2**20
    max_characters: int = 20_000
    max_inspected: int = 1500
    timeout: float = 300.0
    shutdown_timeout: float = 30.0

    def check(self) -> None:
        """Raises :class:`InputError` for all values out of range."""
        problems = [
            f"{flag_of(name)} {getattr(self, name):g}: at least {minimum:g}"
            for name, minimum in MINIMUM.items()
            if not getattr(self, name) >= minimum
        ]
        refuse(problems)


class RequestError(Exception):
    """Request that is answered with an error.

    Args:
        status: HTTP status.
        message: one sentence: problem and remedy.
        retry_after: seconds after which the client may try again.
    """

    def __init__(self, status: int, message: str, retry_after: Optional[int] = None):
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after


class Deadline:
    """End of the time of a request.

    Args:
        seconds: time from now on.
    """

    def __init__(self, seconds: float):
        self.seconds, self.end = seconds, time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Remaining seconds, at least 0."""
        return max(0.0, self.end - time.monotonic())

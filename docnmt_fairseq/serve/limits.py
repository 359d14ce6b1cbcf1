"""Limits of requests, and errors that answer them."""

import re
from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import CheckedOptions, option

ORIGIN = re.compile(r"[A-Za-z][\w+.-]*://[^/?#@\s*]+")


@dataclass(frozen=True)
class Limits(CheckedOptions):
    """Limits of a server, options of ``docnmt serve``.

    Raises:
        InputError: values out of range.
    """

    max_waiting: int = option(5000, "sentences in the queue; more: 429", minimum=1)
    max_bytes: int = option(4 * 2**20, "bytes of a request; more: 413", minimum=1)
    max_characters: int = option(20_000, "length of a sentence; longer: 422", minimum=1)
    max_inspected: int = option(1500, "source tokens of an inspected document", minimum=0)
    timeout: float = option(300.0, "seconds of a request; longer: 504", minimum=0.001, metavar="S")
    shutdown_timeout: float = option(30.0, "seconds to finish running requests", minimum=0, metavar="S")


def check_origin(origin: str) -> str:
    """Returns an origin in the form that browsers send: scheme and host in lower case, ``*`` or ``null``.

    Raises:
        InputError: it is something else, such as an address with a path.
    """
    if origin not in ("*", "null") and not ORIGIN.fullmatch(origin):
        raise InputError(
            f"--allow-origin {origin}: give scheme and host without path, such as https://app.example:8080"
        )
    return origin.lower()


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

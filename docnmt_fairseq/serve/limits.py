"""Limits of requests, and errors that answer them."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import AsyncIterator, Optional

from docnmt_fairseq.options import CheckedOptions, option


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


@asynccontextmanager
async def before(deadline: float, status: int = 504) -> AsyncIterator[None]:
    """Context that ends with a :class:`RequestError` at a time of the event loop."""
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError:
        raise RequestError(status, "not finished within the server's --timeout; send less, or later") from None

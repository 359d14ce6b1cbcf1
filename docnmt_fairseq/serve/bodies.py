"""Reading the bodies of requests, as far as they are taken; and noticing that a client is gone."""

import asyncio
from typing import Coroutine, TypeVar

from starlette.requests import ClientDisconnect, Request

from docnmt_fairseq.serve.limits import Limits, Refusal
from docnmt_fairseq.serve.pending import Deadline

Answer = TypeVar("Answer")
TOGETHER = 8  # largest requests that are read and prepared at one time


class Room:
    """Bytes of requests that are read and not yet prepared; they are bounded, too.

    Args:
        limits: of the server.
    """

    def __init__(self, limits: Limits):
        self.limits, self.used = limits, 0

    async def read(self, request: Request, deadline: Deadline) -> bytes:
        """The body of a request; :meth:`release` is to be told when it is prepared.

        Raises:
            Refusal: it is too large, encoded, or too slow; or there is no room.
        """
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refusal(415, "a body with Content-Encoding is not taken; send it as it is")
        length = request.headers.get("content-length", "")
        if length.isdecimal():
            self._check(int(length))
        try:
            return await asyncio.wait_for(self._all(request), deadline.left)
        except (TimeoutError, asyncio.TimeoutError):
            raise Refusal(408, f"the body did not arrive within {deadline.seconds:g} s") from None

    async def _all(self, request: Request) -> bytes:
        content = bytearray()
        try:
            async for chunk in request.stream():
                content += chunk
                self.used += len(chunk)
                self._check(len(content))
                if self.used > TOGETHER * self.limits.max_bytes:
                    raise Refusal(429, "many large requests are being read; try again in 1 s", 1)
        except BaseException:
            self.used -= len(content)
            raise
        return bytes(content)

    def release(self, body: bytes) -> None:
        """A body is prepared."""
        self.used -= len(body)

    def _check(self, length: int) -> None:
        if length > self.limits.max_bytes:
            raise Refusal(413, f"the body is larger than {self.limits.max_bytes:,} bytes; divide the text")


async def unless_disconnected(request: Request, work: Coroutine[None, None, Answer]) -> Answer:
    """What the work gives; it is cancelled when the client goes away, whose body has been read.

    Raises:
        ClientDisconnect: it went.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

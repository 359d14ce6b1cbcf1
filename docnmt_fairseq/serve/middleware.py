"""What every request passes: headers that keep browsers careful, no entrance in a crowd or while the server stops."""

import asyncio
from typing import Callable

from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docnmt_fairseq.serve.service import Service

# Scripts and styles are the server's own files; nothing is loaded from elsewhere, or sent there.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class AdmissionMiddleware:
    """An application behind it.

    Args:
        app: the application.
        service: whose requests, those that post, are counted while they are under way.
        crowded: why no request is taken at this moment; "": they are.
    """

    def __init__(self, app: ASGIApp, service: Service, crowded: Callable[[], str]):
        self.app, self.service, self.crowded = app, service, crowded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        begun = False

        async def careful(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        crowd = self.crowded()
        if crowd:
            await _refusal(crowd, 1)(scope, receive, careful)
        elif scope["method"] != "POST":
            method = "GET" if scope["method"] == "HEAD" else scope["method"]  # uvicorn leaves out what it lacks
            await self.app({**scope, "method": method}, receive, careful)
        elif self.service.unready:
            await _refusal(self.service.unready, 10)(scope, receive, careful)
        else:
            self.service.requests += 1
            try:
                await self.app(scope, receive, careful)
            except asyncio.CancelledError:  # the server stops, and the time of what is under way is over
                if not begun:
                    await _refusal(self.service.unready, 10)(scope, receive, careful)
            finally:
                self.service.requests -= 1


def _refusal(reason: str, seconds: int) -> JSONResponse:
    """An answer after which the connection ends; it may be tried again in some seconds."""
    return JSONResponse({"error": reason}, 503, {"Retry-After": str(seconds), "Connection": "close"})

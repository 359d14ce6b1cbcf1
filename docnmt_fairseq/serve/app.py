"""The application: the API, the pages, health and metrics, and one shape for all errors."""

import asyncio
from contextlib import suppress
from typing import Any, Callable

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from docnmt_fairseq import __version__
from docnmt_fairseq.serve import pages
from docnmt_fairseq.serve.api import router
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.serve.metrics import Counted, Metrics
from docnmt_fairseq.serve.middleware import AdmissionMiddleware
from docnmt_fairseq.serve.service import Service

CLOSING = (408, 413)  # after which what is left of a body is not taken
LINGER = 1.0  # seconds that a client has to read why
GONE = 499  # of answers that nobody gets


class Closing(JSONResponse):
    """An answer to a request that is not read to its end, after which the connection is closed.

    Were it closed at once, what the client still sends would make its system throw the answer away.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        self.headers["Connection"] = "close"
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(_rest(receive), LINGER)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _rest(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass


def application(service: Service, crowded: Callable[[], str] = lambda: "") -> Any:
    """The application of a service that has begun, as ASGI has it.

    Args:
        service: that answers.
        crowded: why no request is taken at this moment; "": they are.
    """
    source, target = service.translator.codec.languages
    told = f"Translates documents from {source} to {target}."
    app = FastAPI(title="docnmt serve", version=__version__, description=told, docs_url=None, redoc_url=None)
    app.include_router(router(service))
    metrics = Metrics(service.backlog)
    _add_pages(app, source, target)
    _add_state(app, service, metrics)
    _add_errors(app)
    return Counted(AdmissionMiddleware(app, service, crowded), metrics, frozenset(app.openapi()["paths"]))


def _add_pages(app: FastAPI, source: str, target: str) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return HTMLResponse(pages.translating_page(source, target))

    @app.get("/docs", include_in_schema=False)
    async def description() -> Response:
        return HTMLResponse(pages.description_page(app.openapi()))

    @app.get("/assets/{name}", include_in_schema=False)
    async def assets(name: str) -> Response:
        if name not in pages.ASSETS:
            raise HTTPException(404)
        content, kind = pages.asset(name)
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})


def _add_state(app: FastAPI, service: Service, metrics: Metrics) -> None:
    @app.get("/health", summary="Whether the server lives", response_class=Response)
    async def health() -> Response:
        """200 as long as the translator works."""
        alive = service.worker.alive
        return JSONResponse({"status": "ok" if alive else "the translator has ended"}, 200 if alive else 500)

    @app.get("/ready", summary="Whether requests are taken", response_class=Response)
    async def ready() -> Response:
        """200, or 503 while the server stops."""
        return JSONResponse({"status": service.unready or "ok"}, 503 if service.unready else 200)

    @app.get("/metrics", summary="Figures for Prometheus", response_class=Response)
    async def figures() -> Response:
        """Requests, sentences, seconds, what waits, memory."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_errors(app: FastAPI) -> None:
    def answer(status: int, message: str, **headers: str) -> Response:
        return (Closing if status in CLOSING else JSONResponse)({"error": message}, status, headers)

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return answer(error.status, error.message, **headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return answer(422, f"{first['loc'][-1]}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def by_http(request: Request, error: HTTPException) -> Response:
        return answer(error.status_code, f"{request.method} {request.url.path[:100]}: {error.detail}")

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return answer(GONE, "the client went away")

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return answer(500, "the server failed; its log says how")

"""Application: API, page, health, metrics and errors."""

import asyncio
import time
from html import escape
from importlib.resources import files
from typing import Any, Callable, Dict, Sequence, Tuple

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docnmt_fairseq import __version__
from docnmt_fairseq.serve.api import router
from docnmt_fairseq.serve.limits import RequestError
from docnmt_fairseq.serve.scheduler import Scheduler
from docnmt_fairseq.serve.service import Service

# Pages load nothing from other servers and send nothing there.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
DISCONNECTED = 499  # status in metrics of requests whose client disconnected
BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # seconds


def application(service: Service, origins: Sequence[str] = ()) -> ASGIApp:
    """Returns the ASGI application of a service.

    Args:
        service: service.
        origins: origins of other web pages that may use the API; ``*``: all.
    """
    source, target = service.translator.codec.languages
    app = FastAPI(
        title="docnmt serve",
        version=__version__,
        description=f"Translates documents from {source} to {target}.",
        docs_url=None,  # FastAPI's pages load scripts from other servers
        redoc_url=None,
        max_body_size=service.limits.max_bytes,
    )
    app.include_router(router(service))
    packages = ("docnmt_fairseq.serve", "assets"), ("docnmt_fairseq.report", "assets")
    app.mount("/assets", StaticFiles(packages=[*packages]))
    template = (files("docnmt_fairseq.serve") / "assets" / "page.html").read_text(encoding="utf-8")
    page = template.format(source=escape(source), target=escape(target))

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return HTMLResponse(page)

    metrics = Metrics(service.scheduler)
    _add_state(app, service, metrics)
    _add_errors(app)
    return CORSMiddleware(  # outermost: pages of other origins can read errors, too
        RequestMiddleware(app, service, metrics),
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["Content-Type"],
        expose_headers=["Retry-After", "Content-Disposition"],
    )


def _add_state(app: FastAPI, service: Service, metrics: "Metrics") -> None:
    @app.get("/health", summary="State of the process", response_class=Response)
    async def health() -> Response:
        """Returns 200 while the translator works."""
        alive = service.thread.alive
        return JSONResponse({"status": "ok" if alive else "the translator has stopped"}, 200 if alive else 500)

    @app.get("/ready", summary="Readiness for requests", response_class=Response)
    async def ready() -> Response:
        """Returns 200, or 503 while the server stops."""
        return JSONResponse({"status": service.unavailable or "ok"}, 503 if service.unavailable else 200)

    @app.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    async def prometheus() -> Response:
        """Returns requests, sentences, seconds, queue, memory."""
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def request_error(request: Request, error: RequestError) -> Response:
        headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return JSONResponse({"error": error.message}, error.status, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid_parameter(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        return JSONResponse({"error": f"{request.method} {request.url.path[:100]}: {error.detail}"}, error.status_code)

    @app.exception_handler(ClientDisconnect)
    async def disconnected(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=DISCONNECTED)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "the server failed; see its log"}, 500)


class Metrics:
    """Metrics of a server.

    Args:
        scheduler: queue of the server.
    """

    def __init__(self, scheduler: Scheduler):
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(scheduler.throughput.total)
        self.requests = Counter("docnmt_requests", "Answered requests", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "docnmt_request_seconds", "Seconds to the end of the answer", ["route"], registry=registry, buckets=BUCKETS
        )
        gauges: Dict[str, Tuple[str, Callable[[], float]]] = {
            "docnmt_waiting_sentences": ("Sentences in the queue", lambda: scheduler.waiting),
            "docnmt_waiting_sentences_limit": ("Maximum number of them", lambda: scheduler.max_waiting),
            "docnmt_sentences_under_way": ("Sentences in the search", lambda: scheduler.in_flight),
            "docnmt_texts": ("Unfinished texts", lambda: len(scheduler.jobs)),
            "docnmt_sentences_per_second": ("Recent sentences per second", scheduler.throughput.per_second),
        }
        for name, (description, value) in gauges.items():
            Gauge(name, description, registry=registry).set_function(value)


class RequestMiddleware:
    """Middleware: security headers, metrics, and the refusal of requests while the server stops.

    Args:
        app: application.
        service: service, whose running POST requests are counted.
        metrics: metrics of the server.
    """

    def __init__(self, app: ASGIApp, service: Service, metrics: Metrics):
        self.app, self.service, self.metrics = app, service, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles an ASGI request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), "none"

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope  # uvicorn removes the body
        posted = scope["method"] == "POST"
        self.service.requests += posted
        try:
            if posted and self.service.unavailable:
                await self._unavailable()(scope, receive, send_with_headers)
            else:
                await self.app(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # the shutdown timeout has passed
            if status == "none":
                await self._unavailable()(scope, receive, send_with_headers)
        finally:
            self.service.requests -= posted
            route: Any = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(route, status).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - start)

    def _unavailable(self) -> JSONResponse:
        return JSONResponse({"error": self.service.unavailable}, 503, {"Retry-After": "10", "Connection": "close"})

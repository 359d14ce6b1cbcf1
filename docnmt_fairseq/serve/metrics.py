"""Figures of a server, as Prometheus reads them."""

import time
from typing import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docnmt_fairseq.serve.backlog import Backlog

BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # seconds


class Queue(Collector):
    """The figures of a backlog, read when they are asked for."""

    def __init__(self, backlog: Backlog):
        self.backlog = backlog

    def collect(self) -> Iterator[Metric]:
        """Yields them."""
        backlog = self.backlog
        yield CounterMetricFamily("docnmt_sentences", "Sentences that were translated", backlog.speed.total)
        figures = {
            "docnmt_waiting_sentences": ("Sentences that wait for the translator", backlog.waiting),
            "docnmt_waiting_sentences_limit": ("Sentences that may wait", backlog.most),
            "docnmt_sentences_under_way": ("Sentences that are with the translator", backlog.under_way),
            "docnmt_texts": ("Texts that wait or are with the translator", len(backlog.jobs)),
            "docnmt_sentences_per_second": ("Sentences a second, of late", backlog.speed.per_second()),
        }
        for name, (told, value) in figures.items():
            yield GaugeMetricFamily(name, told, value)


class Metrics:
    """What is counted.

    Args:
        backlog: of the server.
    """

    def __init__(self, backlog: Backlog):
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "docnmt_requests", "Requests that were answered", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "docnmt_request_seconds", "Seconds to the end of an answer", ["route"], registry=self.registry,
            buckets=BUCKETS,
        )  # fmt: skip
        self.registry.register(Queue(backlog))

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)


class Counted:
    """An application whose answers are counted.

    Args:
        app: the application.
        metrics: where to.
        routes: paths that are told apart.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: frozenset[str]):
        self.app, self.metrics, self.routes = app, metrics, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), "none"  # no answer: the client went away
        route = scope["path"] if scope["path"] in self.routes else "other"

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            self.metrics.requests.labels(route, status).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - start)

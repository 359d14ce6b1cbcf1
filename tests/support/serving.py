"""Server in a thread of the test process, and a client."""

import http.client
import json
import threading
import time
from contextlib import contextmanager, suppress

from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.serve.limits import Limits
from docnmt_fairseq.serve.server import Server, listen
from docnmt_fairseq.serve.service import Service
from docnmt_fairseq.translate.translator import DocumentTranslator
from docnmt_fairseq.translate.view import DocumentView

SEARCH = SearchOptions(beam=3, max_len_b=10, nbest=3)
TEXT, JSON = "text/plain", "application/json"


def translator_of(checkpoint, data, **view):
    """Returns a translator for a server, with a view of documents."""
    options = {"search": SEARCH, "max_tokens": 60, "cpu": True}
    return DocumentTranslator.from_checkpoint(checkpoint, data=data, view=DocumentView(**view), **options)


class Client:
    """Client of the server at a local port."""

    def __init__(self, port):
        self.port = port

    @property
    def address(self):
        """Address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def connect(self, method, path, body=b"", kind=TEXT, **headers):
        """Returns a connection on which a request was sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = json.dumps(body).encode() if kind == JSON and not isinstance(body, (bytes, str)) else body
        body = body.encode() if isinstance(body, str) else body
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        with suppress(BrokenPipeError, ConnectionResetError):  # the server answered and closed the connection
            connection.request(method, path, body or None, {"Content-Type": kind, **headers})
        return connection

    def ask(self, method, path, body=b"", kind=TEXT, **headers):
        """Returns status, headers and body of an answer."""
        connection = self.connect(method, path, body, kind, **headers)
        try:
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        """Returns status and text of a page."""
        status, _, body = self.ask("GET", path)
        return status, body.decode()

    def text(self, body, path="/v1/translate", **headers):
        """Returns status and answer to text."""
        status, _, found = self.ask("POST", path, body, **headers)
        return status, found.decode()

    def json(self, body, path="/v1/translate", **headers):
        """Returns status and answer to an object."""
        status, _, found = self.ask("POST", path, body, JSON, **headers)
        return status, json.loads(found)

    def stream(self, body, path="/v1/translate", **headers):
        """Returns the objects of a stream."""
        status, answered, found = self.ask("POST", path, {**body, "stream": True}, JSON, **headers)
        assert status == 200 and answered["content-type"] == "application/x-ndjson", found
        return [json.loads(line) for line in found.splitlines()]


class Running(Client):
    """Server in a thread.

    Args:
        translator: translator.
        origins: origins of web pages that may use the API.
        limits: fields of :class:`Limits`.
    """

    def __init__(self, translator, origins=(), **limits):
        self.service = Service(translator, Limits(**limits))
        listener = listen("127.0.0.1", 0)
        super().__init__(listener.getsockname()[1])
        self.server = Server(self.service, origins)
        self.service.thread.start()
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()

    def close(self):
        """Stops the server."""
        self.server.should_exit = True
        self.thread.join(timeout=10)
        self.service.stop()
        assert not self.thread.is_alive() and not self.service.thread.alive


@contextmanager
def running(translator, **limits):
    """Runs a server during a block."""
    server = Running(translator, **limits)
    try:
        yield server
    finally:
        server.close()


class Held:
    """Translator that returns no sentence until it is released."""

    def __init__(self, translator):
        self.translator, self.free, self.holding = translator, threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.translator, name)

    def stream(self, batches, **options):
        """Yields the results of the translator after the release."""
        for result in self.translator.stream(batches, **options):
            self.holding.set()
            assert self.free.wait(60)
            yield result


def soon(condition, seconds=20):
    """Waits until a condition is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.01)

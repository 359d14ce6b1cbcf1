"""A server in a thread of the tests' process, and what asks it."""

import http.client
import json
import threading
import time
from contextlib import contextmanager, suppress

from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.serve.limits import Limits
from docnmt_fairseq.serve.server import Server, bound_socket
from docnmt_fairseq.serve.service import Service
from docnmt_fairseq.translate.translator import DocumentTranslator
from docnmt_fairseq.translate.view import DocumentView

SEARCH = SearchOptions(beam=3, max_len_b=10, nbest=3)
TEXT, JSON = "text/plain", "application/json"


def translator_of(checkpoint, data, **view):
    """A translator as a server has it, with a view of documents."""
    options = {"search": SEARCH, "max_tokens": 60, "cpu": True}
    return DocumentTranslator.from_checkpoint(checkpoint, data=data, view=DocumentView(**view), **options)


class Client:
    """Asks the server at a port of this machine."""

    def __init__(self, port):
        self.port = port

    @property
    def address(self):
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def connect(self, method, path, body=b"", kind=TEXT, **headers):
        """A connection on which a request was sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = json.dumps(body).encode() if kind == JSON and not isinstance(body, (bytes, str)) else body
        body = body.encode() if isinstance(body, str) else body
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        with suppress(BrokenPipeError, ConnectionResetError):  # the server has answered, and reads no more
            connection.request(method, path, body or None, {"Content-Type": kind, **headers})
        return connection

    def ask(self, method, path, body=b"", kind=TEXT, **headers):
        """The answer's status, headers and body."""
        connection = self.connect(method, path, body, kind, **headers)
        try:
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        """The status and the text of a page."""
        status, _, body = self.ask("GET", path)
        return status, body.decode()

    def text(self, body, path="/v1/translate", **headers):
        """The status and the answer to text."""
        status, _, found = self.ask("POST", path, body, **headers)
        return status, found.decode()

    def text_of(self, content, path="/v1/translate"):
        """The status and the answer to bytes; what is no text in it becomes �."""
        status, _, found = self.ask("POST", path, content)
        return status, found.decode("utf-8", "replace")

    def json(self, body, path="/v1/translate", **headers):
        """The status and the object that answers one."""
        status, _, found = self.ask("POST", path, body, JSON, **headers)
        return status, json.loads(found)

    def stream(self, body, path="/v1/translate", **headers):
        """The objects that answer one, a line each."""
        status, answered, found = self.ask("POST", path, {**body, "stream": True}, JSON, **headers)
        assert status == 200 and answered["content-type"] == "application/x-ndjson", found
        return [json.loads(line) for line in found.splitlines()]


class Running(Client):
    """A server in a thread.

    Args:
        translator: of it.
        limits: of :class:`Limits`.
    """

    def __init__(self, translator, **limits):
        self.service = Service(translator, Limits(**limits))
        listener = bound_socket("127.0.0.1", 0)
        super().__init__(listener.getsockname()[1])
        self.server = Server(self.service)
        self.service.start()
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self.thread.start()

    def close(self):
        """Ends it."""
        self.server.should_exit = True
        self.thread.join(timeout=10)
        self.service.stop()
        assert not self.thread.is_alive() and not self.service.worker.alive


@contextmanager
def running(translator, **limits):
    """A server that ends with the block."""
    server = Running(translator, **limits)
    try:
        yield server
    finally:
        server.close()


class Held:
    """A translator that gives no sentence until it is let go; everything else is another one's."""

    def __init__(self, translator):
        self.translator, self.free, self.holding = translator, threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.translator, name)

    def stream(self, batches, **options):
        """See the translator."""
        for result in self.translator.stream(batches, **options):
            self.holding.set()
            assert self.free.wait(60)
            yield result


def soon(condition, seconds=20):
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.01)

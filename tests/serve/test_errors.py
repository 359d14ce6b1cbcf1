"""Requests that are invalid, too large or too late are answered with an error; the server keeps working."""

import json
import socket
import threading

import pytest

from tests.support.malformed import docx
from tests.support.serving import JSON, Held, running, soon, translator_of


@pytest.fixture
def held(checkpoint, prepared):
    """Returns a server whose translator waits until it is released."""
    translator = Held(translator_of(checkpoint, prepared))
    with running(translator, max_waiting=6, timeout=60) as server:
        server.free, server.holding = translator.free, translator.holding
        yield server
        translator.free.set()


def refused(answer, status, *parts):
    """Checks that an answer is an error of one line with certain words."""
    found_status, body = answer
    body = json.loads(body) if isinstance(body, str) else body
    assert found_status == status and list(body) == ["error"], answer
    assert all(part in body["error"] for part in parts) and "\n" not in body["error"] and len(body["error"]) < 400
    return True


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"{", 400, "JSON"),
        (b'{"text": "\xff"}', 400, "JSON"),
        (b"{}", 422, "paragraphs or text"),
        (b'{"paragraphs": [["a", null]]}', 422, "paragraphs.0.1"),
        (b'{"text": "a", "beam": 9}', 422, "beam"),
        (b'{"text": "a", "target_prefix": [["a"]]}', 422, "target_prefix"),
        (b'{"paragraphs": [["a"]], "target_prefix": [[]]}', 422, "target_prefix"),
        (b'{"paragraphs": [["a"]], "target_prefix": [["' + b"b" * 5001 + b'"]]}', 422, "target_prefix of 5,001"),
    ],
)
def test_invalid_json(server, body, status, part):
    assert refused(server.json(body), status, part)


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "part"),
    [
        ("GET", "/nowhere", {}, 404, "Not Found"),
        ("GET", "/v1/translate", {}, 405, "Method Not Allowed"),
        ("POST", "/v1/translate", {"Content_Type": "text/html"}, 415, "text/plain"),
        ("POST", "/v1/translate?contxt=none", {}, 422, "contxt"),
        ("POST", "/v1/files?name=a.json5", {}, 422, "format=text"),
        ("POST", "/v1/files?format=json5", {}, 422, "format"),
        ("POST", "/v1/files?name=a.html", {"Content_Type": "multipart/form-data; boundary=x"}, 415, "forms"),
    ],
)
def test_invalid_requests(server, method, path, headers, status, part):
    found, _, body = server.ask(method, path, b"a\n", **headers)
    assert refused((found, json.loads(body)), status, part)


def test_large_bodies(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\na")
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 413 ")
    assert server.text("a" * 3_000_001)[0] == 413
    assert server.text("a\n")[0] == 200


def test_large_texts(server):
    assert refused(server.text("a\n" * 301), 413, "301 sentences")
    assert refused(server.text("\n" * 1201), 413, "more than 1,200 lines")
    assert refused(server.text("a\n\nb\n" + "a" * 4001), 422, "text, line 4", "4,001 characters")
    assert refused(server.text("a\n<p>\n" + "a " * 1100), 422, "text, line 3", "1,101 tokens")
    found = server.json({"paragraphs": [["a"], ["b", "a " * 1100]]})
    assert refused(found, 422, "paragraph 2, sentence 2 ('a a a", "1,101 tokens")
    assert refused(server.text("a\n\xff\n".encode("latin-1")), 422, "text:2")


def test_files_larger_than_their_size(server):
    content = docx(("word/document.xml", bytes(13_000_000)))
    assert len(content) < 30_000
    assert refused(server.text(content, "/v1/files?name=a.docx"), 413, "more than 12,000,000 bytes unpacked")
    assert refused(server.text("<p>Word" * 301, "/v1/files?name=a.html"), 413, "more than 300 sentences")


def test_full_queue(held):
    answers = []
    clients = [threading.Thread(target=lambda: answers.append(held.text("a\n" * 6))) for _ in range(2)]
    clients[0].start()
    assert held.holding.wait(20) and held.service.scheduler.in_flight == 6
    clients[1].start()
    soon(lambda: held.service.scheduler.waiting == 6)
    status, headers, body = held.ask("POST", "/v1/translate", "a\n")
    assert refused((status, json.loads(body)), 429, "6 sentences")
    assert int(headers["retry-after"]) >= 1
    metrics = held.get("/metrics")[1]
    assert "docnmt_waiting_sentences 6.0" in metrics and "docnmt_sentences_under_way 6.0" in metrics
    assert 'docnmt_requests_total{route="/v1/translate",status="429"} 1.0' in metrics
    assert held.get("/health")[0] == held.get("/ready")[0] == 200
    held.free.set()
    for client in clients:
        client.join()
    assert [status for status, _ in answers] == [200, 200]
    assert "docnmt_sentences_total 12.0" in held.get("/metrics")[1]


def test_timeout(checkpoint, prepared):
    translator = Held(translator_of(checkpoint, prepared))
    with running(translator, timeout=0.3) as server:
        assert refused(server.text("a\n"), 504, "--timeout")
        (last,) = server.stream({"paragraphs": [["a"]]})
        assert last["status"] == 504
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
            slow.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na")
            assert b" 408 " in slow.makefile("rb").readline()
        assert not server.service.scheduler.jobs
        translator.free.set()


@pytest.mark.parametrize("stream", [False, True])
def test_disconnected_clients_free_their_places(held, stream):
    first = held.connect("POST", "/v1/translate", "a\n" * 2)
    assert held.holding.wait(20)
    second = held.connect("POST", "/v1/translate", {"paragraphs": [["a"] * 6], "stream": stream}, JSON)
    soon(lambda: held.service.scheduler.waiting == 6)
    second.close()
    soon(lambda: held.service.scheduler.waiting == 0)
    first.close()
    soon(lambda: not held.service.scheduler.jobs and not held.service.requests)
    held.free.set()
    assert held.text("a\n")[0] == 200


def test_failing_translator(checkpoint, prepared, translator, monkeypatch):
    broken = translator_of(checkpoint, prepared)
    with running(broken) as server:
        real = broken.engine.decoder.step
        monkeypatch.setattr(broken.engine.decoder, "step", lambda *arguments: 1 / 0)
        assert refused(server.text("a\n"), 500, "failed")
        monkeypatch.setattr(broken.engine.decoder, "step", real)
        assert server.text("a b\n") == (200, translator.translate([["a b"]])[0][0] + "\n")
        monkeypatch.setattr(broken.codec, "decode", lambda tokens: 1 / 0)
        assert refused(server.text("a\n"), 500, "failed")
        assert server.get("/health")[0] == 200


def test_shutdown_finishes_running_requests(held, translator):
    answers = []
    client = threading.Thread(target=lambda: answers.append(held.text("a b\nc\n")))
    client.start()
    assert held.holding.wait(20)
    held.service.shut_down()
    assert refused(held.text("a\n"), 503, "stopping")
    assert held.get("/ready")[0] == 503 and held.get("/health")[0] == 200
    held.free.set()
    client.join()
    assert answers == [(200, "".join(f"{line}\n" for line in translator.translate([["a b", "c"]])[0]))]
    held.thread.join(timeout=10)
    assert not held.thread.is_alive()


ORIGIN = "https://app.example"


@pytest.mark.parametrize(
    "origins, allowed", [([], None), ([ORIGIN], ORIGIN), (["https://other.example"], None), (["*"], "*")]
)
def test_pages_of_other_origins(checkpoint, prepared, origins, allowed):
    def allows(method, **headers):
        status, found, _ = other.ask(method, "/v1/translate", {"x": 1}, JSON, Origin=ORIGIN, **headers)
        return status, {name.lower(): value for name, value in found.items()}.get("access-control-allow-origin")

    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    with running(translator_of(checkpoint, prepared), origins=origins) as other:
        assert allows("OPTIONS", **preflight) == (200 if allowed else 400, allowed)
        assert allows("POST") == (422, allowed)  # errors can be read
        assert other.get("/v1/model")[0] == 200  # for programs without origin

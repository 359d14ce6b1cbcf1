"""What is too much, too late or too bad is refused in one sentence; the server goes on."""

import json
import socket
import threading
from contextlib import ExitStack

import pytest

from docnmt_fairseq.serve import server as serving
from tests.support.malformed import CASES, TEXTS, content_of, document, docx
from tests.support.serving import JSON, Held, running, soon, translator_of


@pytest.fixture
def held(checkpoint, prepared):
    """Returns a server whose translator waits to be let go."""
    translator = Held(translator_of(checkpoint, prepared))
    with running(translator, max_waiting=6, timeout=60) as server:
        server.free, server.holding = translator.free, translator.holding
        yield server
        translator.free.set()


def refused(answer, status, *parts):
    """Asserts that an answer is an error of one sentence that says some things."""
    found_status, body = answer
    body = json.loads(body) if isinstance(body, str) else body
    assert found_status == status and list(body) == ["error"], answer
    assert all(part in body["error"] for part in parts) and "\n" not in body["error"] and len(body["error"]) < 400
    return True


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"", 400, "Invalid JSON"),
        (b"{", 400, "Invalid JSON"),
        (b"[" * 200_000, 400, "Invalid JSON: recursion limit"),
        (b'{"paragraphs":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "recursion limit"),
        (b'{"text": "\xff"}', 400, "Invalid JSON"),
        (b'{"text": "\\ud800"}', 400, "Invalid JSON"),
        (b"\xff\xfe{}", 400, "Invalid JSON"),
        (b"null", 422, "Input should be an object"),
        (b"[1]", 422, "Input should be an object"),
        (b"{}", 422, "give either paragraphs or text"),
        (b'{"text": "a", "paragraphs": []}', 422, "give either paragraphs or text"),
        (b'{"text": 1}', 422, "text: Input should be a valid string"),
        (b'{"paragraphs": ["a"]}', 422, "paragraphs.0: Input should be a valid array"),
        (b'{"paragraphs": [["a", null]]}', 422, "paragraphs.0.1: Input should be a valid string"),
        (b'{"text": "a", "beam": 9}', 422, "beam: Extra inputs are not permitted"),
        (b'{"text": "a", "context": "all"}', 422, "context: Input should be 'document' or 'none'"),
        (b'{"text": "a", "nbest": 4}', 422, "nbest 4: at most 3, the server's beam"),
        (b'{"text": "a", "nbest": 0}', 422, "nbest: Input should be greater than or equal to 1"),
        (b'{"text": "a", "nbest": 1e999}', 422, "nbest"),
        (b'{"text": "a", "target_prefix": [["a"]]}', 422, "target_prefix: give paragraphs, not text"),
        (
            b'{"paragraphs": [["a"]], "target_prefix": [[]]}',
            422,
            "target_prefix: give one for each sentence",
        ),
        (b'{"paragraphs": [["a", " "]], "target_prefix": [["", "b"]]}', 422, "paragraph 1, sentence 2 is no sentence"),
        (
            b'{"paragraphs": [["a", "b"]], "target_prefix": [["", " <p>"]]}',
            422,
            "<p>, but paragraph 1, sentence 2 is a sentence",
        ),
        (
            b'{"paragraphs": [["a"]], "target_prefix": [["' + b"b" * 5001 + b'"]]}',
            422,
            "target_prefix: 5,001 characters",
        ),
        (b'{"paragraphs": [["a"]], "target_prefix": [["b <pad>"]], "scores": true}', 422, "'b <pad>' contains <pad>"),
        (b'{"text": "a", "target_context": [["a"]]}', 422, "target_context: give paragraphs, not text"),
        (b'{"paragraphs": [["a"]], "target_context": [["b"]]}', 422, "--target-context: needs a model"),
    ],
)
def test_json_that_is_wrong(server, body, status, part):
    assert refused(server.json(body), status, part)


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8; format=flowed", 'Text/Plain;charset="UTF-8" ;delsp=no'])
def test_a_type_may_say_more_behind_its_charset(server, kind):
    assert server.text("a b c", Content_Type=kind) == server.text("a b c")


def test_json_may_begin_with_a_byte_order_mark(server):
    assert server.json(b'\xef\xbb\xbf{"paragraphs": [["a"]]}')[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "part"),
    [
        ("GET", "/nowhere", {}, 404, "Not Found"),
        ("GET", "/v1/translate", {}, 405, "Method Not Allowed"),
        ("GET", "/assets/..%2f..%2fserver.py", {}, 404, "Not Found"),
        ("POST", "/v1/translate", {"Content_Type": "text/html"}, 415, "send text/plain or application/json"),
        ("POST", "/v1/translate", {"Content_Type": "text/plain; charset=latin-1"}, 415, "UTF-8"),
        ("POST", "/v1/translate", {"Content_Encoding": "gzip"}, 415, "Content-Encoding"),
        ("POST", "/v1/translate?context=all", {}, 422, "context: Input should be"),
        ("POST", "/v1/translate?contxt=none", {}, 422, "?contxt=: no such parameter, there are context, stream"),
        ("POST", "/v1/translate?context=none", {"Content_Type": "application/json"}, 422, "of JSON it is a field"),
        ("POST", "/v1/inspect?context=none", {}, 422, "?context=: no such parameter, there are none"),
        ("POST", "/v1/files?format=none", {}, 422, "--format none: no such format"),
        ("POST", "/v1/files?name=a.html", {"Content_Type": "multipart/form-data; boundary=x"}, 415, "the file itself"),
        ("POST", "/v1/files?name=a.html.gz", {}, 415, "send it unpacked"),
        ("POST", "/v1/files?name=a.srt.zst", {}, 415, "send it unpacked"),
        ("POST", f"/v1/files?name={'x' * 300}", {}, 422, "name: "),
        ("POST", "/v1/inspect", {}, 415, "send application/json"),
    ],
)
def test_requests_that_are_wrong(server, method, path, headers, status, part):
    found, _, body = server.ask(method, path, b"a\n", **headers)
    assert refused((found, json.loads(body)), status, part)


def test_too_many_bytes_are_refused_without_being_read(server):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    with connection:
        connection.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\na")
        answer = connection.makefile("rb").read().decode()  # to the end: the server closes
    assert answer.startswith("HTTP/1.1 413 ") and "3,000,000 bytes" in answer
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    with connection:
        connection.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n%s\r\n" % (100_000, b"a" * 100_000)
        for _ in range(31):
            connection.sendall(chunk)
        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 413 ")
    soon(lambda: server.text("a\n")[0] == 200)


def test_too_much_text_is_refused(server):
    assert refused(server.text("a\n" * 301), 413, "301 sentences, but at most 300")
    assert refused(server.text("\n" * 1201), 413, "1,201 lines")
    assert refused(server.json({"text": "\n" * 1201}), 413, "1,201 lines")
    assert refused(server.json({"paragraphs": [[""] * 1201]}), 413, "1,201 lines")
    assert refused(server.text("a\n\nb\n" + "a" * 4001), 422, "text, line 4: a sentence of 4,001 characters")
    assert refused(
        server.text("a\n<p>\n" + "a " * 1100), 422, "text, line 3: a sentence of 1,101 tokens, but the model"
    )
    found = server.json({"paragraphs": [["a"], ["b", "a " * 1100]]})
    assert refused(found, 422, "paragraph 2, sentence 2 ('a a a", "1,101 tokens")
    assert refused(server.text("a\n\xff\n".encode("latin-1")), 422, "text:2: not UTF-8")


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.docx", docx(("word/document.xml", bytes(13_000_000))), "a.docx: larger than 11 MiB unpacked; divide it"),
        ("a.docx", document("<w:p/>" * 40_000), "a.docx: more than 30,000 tags; divide it"),
        ("a.html", b"<p>Word" * 301, "a.html: more than 300 sentences; divide it"),
    ],
)
def test_files_that_hold_more_than_their_size_tells_are_refused(server, name, content, part):
    assert len(content) < 30_000 and refused(server.text(content, f"/v1/files?name={name}"), 413, part)


def test_a_full_queue_says_when_to_try_again(held):
    answers = []
    clients = [threading.Thread(target=lambda: answers.append(held.text("a\n" * 6))) for _ in range(2)]
    clients[0].start()
    assert held.holding.wait(20) and held.service.backlog.under_way == 6
    clients[1].start()
    soon(lambda: held.service.backlog.waiting == 6)
    status, headers, body = held.ask("POST", "/v1/translate", "a\n")
    assert refused((status, json.loads(body)), 429, "6 sentences wait already; try again in")
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


def test_a_crowd_is_told_as_everything_else(server, monkeypatch):
    monkeypatch.setattr(serving, "CONNECTIONS", 2)
    soon(lambda: len(server.server.server_state.connections) == 0)
    with ExitStack() as crowd:
        for _ in range(2):
            crowd.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        soon(lambda: len(server.server.server_state.connections) == 2)
        status, headers, body = server.ask("POST", "/v1/translate", "a\n")
    assert refused((status, json.loads(body)), 503, "2 connections are open already; try again in 1 s")
    assert headers["retry-after"] == "1" and headers["x-content-type-options"] == "nosniff"
    soon(lambda: len(server.server.server_state.connections) == 0)
    assert server.text("a\n")[0] == 200


def test_what_takes_too_long_is_given_up(checkpoint, prepared):
    translator = Held(translator_of(checkpoint, prepared))
    with running(translator, timeout=0.3) as server:
        assert refused(server.text("a\n"), 504, "not translated within 0.3 s")
        (last,) = server.stream({"paragraphs": [["a"]]})
        assert last["status"] == 504 and "not translated within" in last["error"]
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow:
            slow.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na")
            assert b" 408 " in slow.makefile("rb").readline()
        assert not server.service.backlog.jobs
        translator.free.set()


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_gives_its_place_up(held, stream):
    first = held.connect("POST", "/v1/translate", "a\n" * 2)
    assert held.holding.wait(20)
    second = held.connect("POST", "/v1/translate", {"paragraphs": [["a"] * 6], "stream": stream}, JSON)
    soon(lambda: held.service.backlog.waiting == 6)
    second.close()
    soon(lambda: held.service.backlog.waiting == 0)
    first.close()
    soon(lambda: not held.service.backlog.jobs and not held.service.requests)
    held.free.set()
    assert held.text("a\n")[0] == 200


def test_a_translator_that_fails_is_told_and_goes_on(checkpoint, prepared, translator, monkeypatch):
    broken = translator_of(checkpoint, prepared)
    with running(broken) as server:
        real = broken.engine.decoder.step
        monkeypatch.setattr(broken.engine.decoder, "step", lambda *arguments: 1 / 0)
        assert refused(server.text("a\n"), 500, "the translator failed at this text")
        monkeypatch.setattr(broken.engine.decoder, "step", real)
        assert server.text("a b\n") == (200, translator.translate([["a b"]])[0][0] + "\n")
        monkeypatch.setattr(broken.codec, "decode", lambda tokens: 1 / 0)
        assert refused(server.text("a\n"), 500, "the translator failed at this text")
        assert server.get("/health")[0] == 200


def test_while_it_stops_nothing_is_taken_and_what_was_is_finished(held, translator):
    answers = []
    client = threading.Thread(target=lambda: answers.append(held.text("a b\nc\n")))
    client.start()
    assert held.holding.wait(20)
    held.service.drain()
    assert refused(held.text("a\n"), 503, "the server is stopping")
    assert held.get("/ready")[0] == 503 and held.get("/health")[0] == 200
    held.free.set()
    client.join()
    assert answers == [(200, "".join(f"{line}\n" for line in translator.translate([["a b", "c"]])[0]))]
    held.thread.join(timeout=10)
    assert not held.thread.is_alive()


def test_a_long_text_does_not_keep_short_ones_waiting(checkpoint, prepared):
    translator = Held(translator_of(checkpoint, prepared, max_document_sentences=20))
    with running(translator) as server:
        long = threading.Thread(target=lambda: server.text("a b c\n" * 2000))
        long.start()
        assert translator.holding.wait(20)
        short = [threading.Thread(target=lambda: server.text("b c d\nc d\n")) for _ in range(3)]
        for client in short:
            client.start()
        soon(lambda: server.service.backlog.waiting + server.service.backlog.under_way == 2006)
        translator.free.set()
        for client in short:
            client.join()
        finished = 2000 - next(iter(server.service.backlog.jobs.values())).left
        long.join()
    assert finished < 400  # those in slots, prepared ones, and some more until answers are on their way


@pytest.mark.parametrize("name", CASES)
def test_a_translated_file_or_one_clear_line(server, name):
    ending, content = content_of(name)
    status, body = server.text_of(content, f"/v1/files?name=in.{ending}")
    assert status == 200 or (status in (413, 415, 422) and refused((status, json.loads(body)), status))


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text_as_text_and_in_json(server, name):
    content = TEXTS[name]
    status, body = server.text_of(content)
    assert status == 200 or refused((status, json.loads(body)), status)
    assert status in (200, 413, 422)
    text = content.decode("utf-8", "replace")
    for asked in ({"text": text}, {"paragraphs": [[text]]}):
        for more in ({}, {"stream": True}):
            status, _, body = server.ask("POST", "/v1/inspect" if more else "/v1/translate", {**asked, **more}, JSON)
            assert status == 200 or refused((status, json.loads(body)), status)
            assert status in (200, 413, 422)


def test_it_still_answers_after_all_that(server, translator):
    assert server.text("a b c\n") == (200, translator.translate([["a b c"]])[0][0] + "\n")
    assert not server.service.backlog.jobs and not server.service.requests


def test_head_is_answered_as_get_without_its_body(server):
    for path, status in (("/health", 200), ("/ready", 200), ("/", 200), ("/nothing", 404)):
        connection = server.connect("HEAD", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (status, b"") and int(answer.getheader("Content-Length")) > 0
        connection.close()

"""docnmt serve as a process: it begins, stops when it is told to, and says in one line why it does not begin."""

import builtins
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.serve.caches import KEPT
from tests.support.serving import JSON, Client, soon


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Lets no bound of a cache stay when a test is over."""
    for name in KEPT:
        monkeypatch.setenv(name, "1000")
        monkeypatch.delenv(name)


@contextmanager
def process(checkpoint, prepared, *options):
    """A running docnmt serve, and a client of it."""
    start = "from docnmt_fairseq.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", start, "serve", "--path", str(checkpoint), "--data", str(prepared)]
    command += ["--cpu", "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    serving = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        told = []
        for line in serving.stderr:
            told.append(line)
            ready = re.search(r"http://127\.0\.0\.1:(\d+)/ is ready", line)
            if ready:
                yield serving, Client(int(ready[1]))
                break
        else:
            pytest.fail("".join(told))
    finally:
        serving.kill()
        serving.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_accepted_is_finished(checkpoint, prepared, number):
    with process(checkpoint, prepared, "--max-len-b", "60", "--min-len", "55") as (serving, client):
        body = {"paragraphs": [["a b c"] * 600], "stream": True}
        connection = client.connect("POST", "/v1/translate", body, JSON)
        answer = connection.getresponse()
        first = answer.readline()
        serving.send_signal(number)
        soon(lambda: client.get("/ready")[0] == 503)
        status, found = client.text("a\n")
        assert (status, json.loads(found)) == (503, {"error": "the server is stopping"})
        objects = [json.loads(line) for line in [first, *answer]]
        assert len(objects) == 601 and objects[-1] == {"done": True, "sentences": 600}
        assert serving.wait(timeout=20) == 0
        assert "Traceback" not in serving.stderr.read()


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
def test_the_grace_time_ends_and_a_second_signal_does_not_wait(checkpoint, prepared, again):
    options = ["--grace", "60" if again else "0.2", "--max-len-b", "900", "--min-len", "800"]
    with process(checkpoint, prepared, *options) as (serving, client):
        connection = client.connect("POST", "/v1/translate", {"paragraphs": [["a b c"] * 4000], "stream": True}, JSON)
        soon(lambda: "docnmt_texts 1.0" in client.get("/metrics")[1])
        serving.send_signal(signal.SIGTERM)
        if again:
            soon(lambda: client.get("/ready")[0] == 503)
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=20) == 0
        connection.close()


@pytest.mark.slow
def test_who_has_not_sent_all_is_told_that_the_server_stops(checkpoint, prepared):
    with process(checkpoint, prepared, "--grace", "0.2") as (serving, client):
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            head = b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n"
            connection.sendall(head + b"\r\na")
            soon(lambda: "docnmt_requests" in client.get("/metrics")[1])
            serving.send_signal(signal.SIGTERM)
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 503 ") and answer.endswith(b'{"error":"the server is stopping"}')
        assert serving.wait(timeout=20) == 0
        assert "Traceback" not in serving.stderr.read()


def test_caches_are_bounded_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    assert cli.main(["serve", "--path", "m", "--port", "0"]) == 2
    assert {name: os.environ[name] for name in KEPT} == {**KEPT, "LRU_CACHE_CAPACITY": "7"}


def test_an_address_that_is_taken(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["serve", "--path", "m", "--port", str(port)]) == 2
    assert f"--host 127.0.0.1 --port {port}: cannot be listened at: Address already in use" in capsys.readouterr().err
    assert cli.main(["serve", "--path", "m", "--port", "70000"]) == 2
    assert "--port 70000: cannot be listened at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-waiting", "0", "--timeout", "0"], "--max-waiting 0: at least 1; --timeout 0: at least 0.001"),
        (["--grace", "-1"], "--grace -1: at least 0"),
        (["--timeout", "nan"], "--timeout nan: at least"),
        (["--beam", "0"], "--beam 0: at least 1"),
        (["--max-tokens", "0"], "--max-tokens 0: at least 1"),
        (["--port", "0"], "--path m: no such file"),
    ],
)
def test_options_that_are_wrong(capsys, options, message):
    assert cli.main(["serve", "--path", "m", *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("docnmt serve: error: ") and message in error and error.count("\n") == 1


def test_the_extra_is_named_where_it_is_missing(capsys, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments):
        if name.partition(".")[0] in ("fastapi", "uvicorn") or name == "docnmt_fairseq.serve.server":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    assert cli.main(["serve", "--path", "m"]) == 2
    assert "docnmt serve needs uvicorn: pip install 'docnmt_fairseq[serve]'" in capsys.readouterr().err

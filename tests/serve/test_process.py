"""docnmt serve as a process: start, shutdown, errors in options."""

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
from docnmt_fairseq.serve.server import CACHES
from tests.support.serving import JSON, Client, soon


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Restores the limits of caches after each test."""
    for name in CACHES:
        monkeypatch.setenv(name, "1000")
        monkeypatch.delenv(name)


@contextmanager
def process(checkpoint, prepared, *options):
    """Runs docnmt serve; yields process and client."""
    start = "from docnmt_fairseq.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", start, "serve", "--path", str(checkpoint), "--data", str(prepared)]
    command += ["--cpu", "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    serving = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        messages = []
        for line in serving.stderr:
            messages.append(line)
            ready = re.search(r"http://127\.0\.0\.1:(\d+)/ is ready", line)
            if ready:
                yield serving, Client(int(ready[1]))
                break
        else:
            pytest.fail("".join(messages))
    finally:
        serving.kill()
        serving.communicate()


@pytest.mark.slow
def test_running_requests_are_finished(checkpoint, prepared):
    with process(checkpoint, prepared, "--max-len-b", "60", "--min-len", "55") as (serving, client):
        body = {"paragraphs": [["a b c"] * 600], "stream": True}
        connection = client.connect("POST", "/v1/translate", body, JSON)
        answer = connection.getresponse()
        first = answer.readline()
        serving.send_signal(signal.SIGTERM)
        soon(lambda: client.get("/ready")[0] == 503)
        status, found = client.text("a\n")
        assert status == 503 and "stopping" in found
        objects = [json.loads(line) for line in [first, *answer]]
        assert len(objects) == 601 and objects[-1] == {"done": True, "sentences": 600}
        assert serving.wait(timeout=20) == 0
        assert "Traceback" not in serving.stderr.read()


@pytest.mark.slow
def test_second_signal_stops_at_once(checkpoint, prepared):
    with process(checkpoint, prepared, "--max-len-b", "900", "--min-len", "800") as (serving, client):
        connection = client.connect("POST", "/v1/translate", {"paragraphs": [["a b c"] * 4000], "stream": True}, JSON)
        soon(lambda: "docnmt_texts 1.0" in client.get("/metrics")[1])
        serving.send_signal(signal.SIGINT)
        soon(lambda: client.get("/ready")[0] == 503)
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=20) == 0
        connection.close()


def test_caches_are_limited_unless_the_environment_does(monkeypatch):
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    assert cli.main(["serve", "--path", "m", "--port", "0"]) == 2
    assert {name: os.environ[name] for name in CACHES} == {**CACHES, "LRU_CACHE_CAPACITY": "7"}


def test_address_in_use(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["serve", "--path", "m", "--port", str(port)]) == 2
    assert "docnmt serve: error: [Errno 98] Address already in use" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--max-waiting", "--timeout", "--beam"])
def test_bad_options(capsys, option):
    assert cli.main(["serve", "--path", "m", option, "0"]) == 2
    assert capsys.readouterr().err.startswith(f"docnmt serve: error: {option} 0")

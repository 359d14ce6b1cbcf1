"""Latency, throughput and correctness of docnmt serve under load.

    python -m benchmarks.speed.serving --path CHECKPOINT --data PREPARED --text FILE [--requests 400] ...

Several clients send requests to a server process, each one as soon as its previous response has arrived. Every document
is first translated alone: its translation must be the same under load. A request is lost if the status is not 200 or a
line is missing.
"""

import argparse
import http.client
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.lib.measuring import run_benchmark
from benchmarks.lib.reporting import table
from docnmt_fairseq.boundaries import is_boundary

TITLE = "Serving"
METRICS = {"cpu": "process_cpu_seconds_total", "sentences": "docnmt_sentences_total"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.add_argument("--path", required=True, metavar="CHECKPOINT")
    parser.add_argument("--data", required=True, metavar="DIR", help="output folder of docnmt prepare")
    parser.add_argument("--text", required=True, type=Path, metavar="FILE", help="documents, one sentence per line")
    parser.add_argument("--requests", type=int, default=400, help="requests per number of clients (default: 400)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--documents", type=int, default=200, help="number of different documents (default: 200)")
    parser.add_argument("--sentences", type=int, default=3, help="maximum sentences of a document (default: 3)")
    parser.add_argument("--words", type=int, default=30, help="leave out longer sentences (default: 30)")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)


class Server:
    """Server process."""

    def __init__(self, args: argparse.Namespace):
        command = [sys.executable, "-m", "docnmt_fairseq", "serve", "--path", args.path, "--data", args.data]
        command += ["--port", "0", "--cpu", "--beam", str(args.beam), "--max-waiting", "100000"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        log = []
        for line in self.process.stderr:
            log.append(line)
            if found := re.search(r"http://[^ ]*:(\d+)/", line):
                self.port = int(found[1])
                threading.Thread(target=self.process.stderr.read, daemon=True).start()  # empties the pipe
                return
        raise RuntimeError("".join(log))

    def figures(self) -> dict[str, float]:
        """Returns CPU seconds and sentences from the server's metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {key: float(re.search(rf"^{name} (\S+)", text, re.M)[1]) for key, name in METRICS.items()}

    def close(self) -> None:
        """Stops the server."""
        self.process.terminate()
        self.process.wait()


@dataclass
class Outcome:
    """Seconds of each request and number of lost and different responses."""

    seconds: list[float] = field(default_factory=list)
    lost: int = 0
    different: int = 0


def documents_of(args: argparse.Namespace) -> list[list[str]]:
    """Returns different documents of a few sentences of the text."""
    chance = random.Random(args.seed)
    found: dict[str, list[str]] = {}
    sentences: list[str] = []
    most = chance.randint(1, args.sentences)
    for line in args.text.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not is_boundary(text) and len(text.split()) <= args.words:
            sentences.append(text)
        if sentences and (len(sentences) >= most or is_boundary(text)):
            found.setdefault("\n".join(sentences), sentences)
            sentences, most = [], chance.randint(1, args.sentences)
        if len(found) == args.documents:
            break
    return list(found.values())


class Clients:
    """Clients of a server.

    Args:
        port: port of the server.
        documents: documents to translate.
    """

    def __init__(self, port: int, documents: Sequence[Sequence[str]]):
        self.port, self.documents = port, documents
        self.expected: list[str] = []

    def translate_alone(self) -> None:
        """Requests every document once, one after another, and keeps the translations."""
        connection = self._connection()
        for number in tqdm(range(len(self.documents)), "alone", disable=None):
            status, text, _ = self._request(connection, number)
            if status != 200:
                raise RuntimeError(f"document {number}: status {status}: {text}")
            self.expected.append(text)
        connection.close()

    def translate(self, clients: int, numbers: Sequence[int]) -> Outcome:
        """Requests documents by number with several clients at the same time."""
        outcome, lock, waiting = Outcome(), threading.Lock(), iter(numbers)

        def client() -> None:
            connection = self._connection()
            while True:
                with lock:
                    number = next(waiting, None)
                if number is None:
                    break
                try:
                    status, text, seconds = self._request(connection, number)
                except OSError:
                    status, text, seconds = 0, "", 0.0
                    connection = self._connection()
                with lock:
                    outcome.seconds.append(seconds)
                    if status != 200 or text.count("\n") != len(self.documents[number]):
                        outcome.lost += 1
                    else:
                        outcome.different += text != self.expected[number]
            connection.close()

        threads = [threading.Thread(target=client) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcome

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def _request(self, connection: http.client.HTTPConnection, number: int) -> tuple[int, str, float]:
        body = "".join(f"{line}\n" for line in self.documents[number]).encode()
        start = time.perf_counter()
        connection.request("POST", "/v1/translate", body, {"Content-Type": "text/plain"})
        response = connection.getresponse()
        text = response.read().decode()
        return response.status, text, time.perf_counter() - start


def load(server: Server, clients: Clients, number: int, numbers: Sequence[int]) -> dict[str, Any]:
    """Returns figures of requests by a number of clients."""
    before, start = server.figures(), time.perf_counter()
    outcome = clients.translate(number, numbers)
    wall, after = time.perf_counter() - start, server.figures()
    ordered = sorted(outcome.seconds)
    return {
        "clients": number,
        "requests": len(numbers),
        "wall": wall,
        "cpu": after["cpu"] - before["cpu"],
        "sentences": after["sentences"] - before["sentences"],
        "percentiles": [ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0.5, 0.9, 0.99, 1)],
        "lost": outcome.lost,
        "different": outcome.different,
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Returns figures by number of clients."""
    documents, chance = documents_of(args), random.Random(args.seed)
    server = Server(args)
    draw = lambda count: [chance.randrange(len(documents)) for _ in range(count)]  # noqa: E731
    try:
        clients = Clients(server.port, documents)
        clients.translate_alone()
        counts = tqdm(args.clients, "loads", disable=None)
        loads = [load(server, clients, count, draw(args.requests)) for count in counts]
    finally:
        server.close()
    return {"documents": len(documents), "sentences": sum(map(len, documents)), "loads": loads}


def report(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    """Returns the paragraphs of the report."""
    first, rows = figures["loads"][0], []
    for one in figures["loads"]:
        latencies = [f"{1000 * seconds:,.0f}" for seconds in one["percentiles"]]
        work = (first["cpu"] / first["sentences"]) / (one["cpu"] / one["sentences"])
        rates = [f"{one['requests'] / one['wall']:.1f}", f"{one['sentences'] / one['wall']:.1f}", f"{work:.2f}"]
        rows.append([one["clients"], *latencies, *rates])
    header = ["clients", "median ms", "90 % ms", "99 % ms", "max ms", "requests/s", "sentences/s"]
    requests, lost, different = (
        sum(one[name] for one in figures["loads"]) for name in ("requests", "lost", "different")
    )
    return [
        table([*header, "sentences per CPU second ÷ one client"], rows),
        f"{requests:,} requests under load: {lost} lost, {different} with another translation than alone.",
        f"Beam {args.beam}; {figures['documents']} documents of {figures['sentences']} sentences, up to "
        f"{args.sentences} each; clients on the same machine. Sentences of concurrent requests share a search.",
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.serving"))

"""Speed of docnmt serve under load, on the loopback: latencies, requests a second, memory; and whether it errs.

    python -m benchmarks.speed.serving --path CHECKPOINT --data PREPARED --text FILE [--requests 10000] ...

A server of its own process gets documents, a few sentences of the text each, some of them many. First every document
is asked for alone: what comes then is what must come ever after, whoever else asks. Then several clients ask at the
same time, each one request after the other, for documents drawn anew; and so that a leak would be seen, very many of
them, while the memory of the server is read. A request is lost if its answer is not 200 or has not as many lines; it
is another's if it is what another document gets.
Writes benchmarks/results/serving.md and .json.
"""

import argparse
import http.client
import itertools
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from tqdm import tqdm

from benchmarks.lib.machine import begin, machine, publish, table
from docnmt_fairseq.marks import is_mark

HEADERS = {"Content-Type": "text/plain"}
START = "from docnmt_fairseq.cli import main; raise SystemExit(main())"
MEBI = 2**20
PARTS = 10  # of the long run, after which memory is read
LONG_ONE = 10  # of so many documents one is long


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", required=True, metavar="CHECKPOINT")
    parser.add_argument("--data", required=True, metavar="DIR", help="what docnmt prepare wrote")
    parser.add_argument("--text", required=True, type=Path, metavar="FILE", help="documents, a sentence a line")
    parser.add_argument("--requests", type=int, default=10_000, help="of the long run (default: 10000)")
    parser.add_argument("--each", type=int, default=400, help="requests at each number of clients (default: 400)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="(default: 1 2 4 8 16)")
    parser.add_argument("--documents", type=int, default=200, help="that are drawn from (default: 200)")
    parser.add_argument("--sentences", type=int, default=3, help="of a document, at most (default: 3)")
    parser.add_argument("--longest", type=int, default=40, help="sentences of every tenth, at most (default: 40)")
    parser.add_argument("--words", type=int, default=30, help="longer sentences are left out (default: 30)")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


class Server:
    """docnmt serve in a process of its own."""

    def __init__(self, args: argparse.Namespace):
        command = [sys.executable, "-c", START, "serve", "--path", args.path, "--data", args.data, "--port", "0"]
        command += ["--cpu", "--beam", str(args.beam), "--max-waiting", "100000"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        told = []
        for line in self.process.stderr:
            told.append(line)
            found = re.search(r":(\d+)/ is ready", line)
            if found:
                self.port = int(found[1])
                # Nothing may fill the pipe.
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise RuntimeError("".join(told))

    def figures(self) -> Dict[str, float]:
        """Returns what the server tells of itself: bytes of memory, seconds of processor time, sentences."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        names = {"memory": "process_resident_memory_bytes", "cpu": "process_cpu_seconds_total"}
        names["sentences"] = "docnmt_sentences_total"
        return {key: float(re.search(rf"^{name} (\S+)", text, re.M)[1]) for key, name in names.items()}

    def close(self) -> None:
        """Ends the server, which finishes what it has."""
        self.process.terminate()
        self.process.wait()


@dataclass
class Outcome:
    """What came of some requests: seconds of each, and what went wrong."""

    seconds: List[float] = field(default_factory=list)
    lost: int = 0
    other: int = 0  # not what came when the document was asked for alone
    anothers: int = 0


def documents_of(args: argparse.Namespace) -> List[List[str]]:
    """Returns documents of a few sentences of the text, every tenth of many, no two of them the same."""
    chance = random.Random(args.seed)
    found: Dict[str, List[str]] = {}
    sentences: List[str] = []
    most, long = chance.randint(1, args.sentences), False
    for line in args.text.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not is_mark(text) and len(text.split()) <= args.words:
            sentences.append(text)
        if sentences and (len(sentences) >= most or (is_mark(text) and not long)):
            found.setdefault("\n".join(sentences), sentences)
            long = len(found) % LONG_ONE == LONG_ONE - 1
            sentences, most = [], chance.randint(1, args.longest if long else args.sentences)
        if len(found) == args.documents:
            break
    return list(found.values())


class Clients:
    """Clients that ask for documents, and know what must come.

    Args:
        port: of the server.
        documents: the documents.
    """

    def __init__(self, port: int, documents: Sequence[Sequence[str]]):
        self.port, self.documents = port, documents
        self.expected: List[str] = []

    def alone(self) -> List[float]:
        """Asks for every document once, one after the other; returns the seconds of each."""
        connection = self._connection()
        answers = [self._ask(connection, number) for number in tqdm(range(len(self.documents)), "alone", disable=None)]
        connection.close()
        wrong = [status for status, _, _ in answers if status != 200]
        if wrong:
            raise RuntimeError(f"{len(wrong)} documents are not answered by 200: {wrong[0]}")
        self.expected = [text for _, text, _ in answers]
        return [seconds for _, _, seconds in answers]

    def together(self, clients: int, numbers: Sequence[int]) -> Outcome:
        """Asks for documents by number, as many at a time as there are clients."""
        outcome, guard, waiting = Outcome(), threading.Lock(), iter(numbers)

        def client() -> None:
            connection = self._connection()
            while True:
                with guard:
                    number = next(waiting, None)
                if number is None:
                    break
                try:
                    answer = self._ask(connection, number)
                except OSError:
                    answer = (0, "", 0.0)
                    connection = self._connection()
                with guard:
                    self._judge(outcome, number, *answer)
            connection.close()

        threads = [threading.Thread(target=client) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcome

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def _ask(self, connection: http.client.HTTPConnection, number: int) -> Tuple[int, str, float]:
        body = "".join(f"{line}\n" for line in self.documents[number]).encode()
        start = time.perf_counter()
        connection.request("POST", "/v1/translate", body, HEADERS)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, text, time.perf_counter() - start

    def _judge(self, outcome: Outcome, number: int, status: int, text: str, seconds: float) -> None:
        outcome.seconds.append(seconds)
        if status != 200 or text.count("\n") != len(self.documents[number]):
            outcome.lost += 1
        elif text != self.expected[number]:
            outcome.other += 1
            outcome.anothers += text in self.expected


def percentiles(seconds: Sequence[float]) -> List[float]:
    """Returns median, 90th and 99th percentile, and the greatest."""
    ordered = sorted(seconds)
    return [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.9, 0.99, 1)]


def measured(server: Server, clients: Clients, number: int, numbers: Sequence[int]) -> Dict[str, Any]:
    """Returns the figures of requests by so many clients at a time."""
    before, start = server.figures(), time.perf_counter()
    outcome = clients.together(number, numbers)
    wall, after = time.perf_counter() - start, server.figures()
    return {
        "clients": number,
        "requests": len(numbers),
        "wall": wall,
        "cpu": after["cpu"] - before["cpu"],
        "sentences": after["sentences"] - before["sentences"],
        "percentiles": percentiles(outcome.seconds),
        "lost": outcome.lost,
        "other": outcome.other,
        "anothers": outcome.anothers,
        "memory": after["memory"],
    }


def measure(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns all figures."""
    documents, chance = documents_of(args), random.Random(args.seed)
    server = Server(args)
    try:
        clients = Clients(server.port, documents)
        clients.alone()
        draw = lambda count: [chance.randrange(len(documents)) for _ in range(count)]  # noqa: E731
        loads = [
            measured(server, clients, number, draw(args.each)) for number in tqdm(args.clients, "loads", disable=None)
        ]
        parts = tqdm([max(1, args.requests // PARTS)] * PARTS, "long", disable=None)
        long = [measured(server, clients, max(args.clients), draw(part)) for part in parts]
    finally:
        server.close()
    distinct = len(set(clients.expected))
    return {
        "documents": len(documents), "distinct": distinct, "sentences": sum(map(len, documents)),
        "loads": loads, "long": long,
    }  # fmt: skip


def report(args: argparse.Namespace, found: Dict[str, Any]) -> str:
    """Returns the page."""
    alone = found["loads"][0]
    rows = []
    for load in found["loads"]:
        latencies = [f"{1000 * seconds:,.0f}" for seconds in load["percentiles"]]
        work = (alone["cpu"] / alone["sentences"]) / (load["cpu"] / load["sentences"])
        speed = load["requests"] / load["wall"]
        of_alone = speed / (alone["requests"] / alone["wall"])
        rows.append([load["clients"], *latencies, f"{speed:.1f}", f"{load['sentences'] / load['wall']:.1f}",
                     f"{of_alone:.2f}", f"{work:.2f}"])  # fmt: skip
    header = ["clients", "median ms", "90 % ms", "99 % ms", "longest ms", "requests/s", "sentences/s", "÷ one client",
              "sentences a CPU second ÷ one client"]  # fmt: skip
    total = sum(part["requests"] for part in found["long"])
    parts = [*found["long"], *found["loads"]]
    lost, other, anothers = (sum(part[name] for part in parts) for name in ("lost", "other", "anothers"))
    all_requests = total + sum(load["requests"] for load in found["loads"])
    done = list(itertools.accumulate(part["requests"] for part in found["long"]))
    memory = [[f"{number:,}", f"{part['memory'] / MEBI:,.1f}"] for number, part in zip(done, found["long"])]
    half = [part["memory"] for part in found["long"]][len(done) // 2 :]
    growth = (half[-1] - half[0]) / MEBI
    lines = ["# Serving", "", table(header, rows), ""]
    lines += [
        f"- {all_requests:,} requests under load: {lost} lost, {anothers} answered with another document's "
        f"translation, {other - anothers} otherwise than alone",
        f"- {found['documents']} documents of {found['sentences']} sentences, {found['distinct']} different "
        "translations",
        f"- {total:,} requests by {max(args.clients)} clients: the server's memory, in MiB, grows by {growth:+.1f} in "
        "their second half",
        "",
        table(["after requests", "MiB"], memory),
        "",
        "Each client sends a request as soon as it has the answer to the last one. Latencies and requests a second are "
        "of the wall, and the machine had other work, too; sentences a CPU second are of the server's own time. "
        "Sentences that come together share a search, so that products have more rows.",
        "",
        f"Beam {args.beam}; documents of up to {args.sentences} sentences, every tenth of up to {args.longest}; "
        f"clients on the same machine. {machine()}.",
    ]
    return "\n".join(lines)


def main() -> None:
    args = options()
    begin()
    found = measure(args)
    paths = {str(args.path): "CHECKPOINT", str(args.data): "PREPARED", str(args.text): args.text.name}
    words = ["python", "-m", "benchmarks.speed.serving", *(paths.get(word, word) for word in sys.argv[1:])]
    publish("serving", report(args, found), **{**found, "command": shlex.join(words)})


if __name__ == "__main__":
    main()

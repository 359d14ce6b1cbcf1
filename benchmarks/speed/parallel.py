"""Preparing and translating with several workers, of which some are killed, compared with one process.

    python -m benchmarks.speed.parallel [--pairs 10000000] [--lines 100000] [--demo FOLDER]

Prepares a corpus of artificial words with one process, then with several, one of which is killed, and the same command
again. Translates text with a model of scripts/demo.sh: in one process, then on a Ray cluster of two nodes on this
machine, where a worker is killed and later a node removed. All outputs must have the same bytes. --folder needs about
1.2 GB per million pairs.
"""

import argparse
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.lib.measuring import run_benchmark
from benchmarks.lib.reporting import ROOT, table

TITLE = "Several workers, with kills"
WORDS, POOL = 60_000, 100_000  # different words, different sentences
SENTENCES, LENGTH = (8, 41), 20.0  # per document, the last number excluded; words per sentence on average
WORKERS = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.add_argument("--pairs", type=int, default=10_000_000, help="sentence pairs to prepare (0: none)")
    parser.add_argument("--lines", type=int, default=100_000, help="sentences to translate (0: none)")
    parser.add_argument("--demo", type=Path, default=ROOT / "demo", help="output of scripts/demo.sh")
    parser.add_argument("--kill-after", type=float, default=20.0, help="seconds before a worker is killed")
    parser.add_argument("--folder", type=Path, help="parent of the temporary folder")


def measure(args: argparse.Namespace) -> dict:
    """Returns seconds of every run, by task."""
    found = {}
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        if args.pairs:
            found["prepare"] = prepare_corpus(folder, args.pairs)
            shutil.rmtree(folder)
            folder.mkdir()
        if args.lines:
            found["translate"] = translate_text(folder, args)
    return found


# --- Preparing ---


def write_corpus(prefix: Path, pairs: int, seed: int = 1) -> None:
    """Writes ``prefix``.en and .de: documents of sentences from a pool, whose words have frequencies of Zipf's law."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abdefghiklmnoprstuvwz"))
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 10, WORDS)]
    shares = 1 / np.arange(2, WORDS + 2)
    sizes = rng.poisson(LENGTH, 2 * POOL) + 1
    chosen = iter(rng.choice(WORDS, int(sizes.sum()), p=shares / shares.sum()).tolist())
    pool = [" ".join(words[next(chosen)] for _ in range(size)) + " ." for size in sizes.tolist()]
    with open(f"{prefix}.en", "w", encoding="utf-8") as source, open(f"{prefix}.de", "w", encoding="utf-8") as target:
        while pairs:
            size = min(pairs, int(rng.integers(*SENTENCES)))
            for number in rng.integers(0, POOL, size).tolist():
                source.write(f"{pool[number]}\n")
                target.write(f"{pool[POOL + number]}\n")
            source.write("\n")
            target.write("\n")
            pairs -= size


def prepare_corpus(folder: Path, pairs: int) -> dict[str, float]:
    """Returns the seconds of preparing a corpus with one process, and with several after a kill.

    Raises:
        RuntimeError: outputs differ.
    """
    write_corpus(folder / "train", pairs)
    common = ["prepare", "-s", "en", "-t", "de", "--train", folder / "train", "--shards", 8]
    common += ["--vocab-size", 8000, "--sample-documents", 10_000]
    one, several = ([*common, "--workers", count, "--output", folder / str(count)] for count in (1, WORKERS))
    found = {"one process": run(one)}
    stopped = start(several)
    while not (folder / str(WORKERS) / "data-bin-2").exists():  # data-bins are written one after another
        time.sleep(0.1)
    os.kill(found_by("-P", str(stopped.pid))[-1], signal.SIGKILL)
    found["a worker is killed: until the command ends"] = waiting(stopped, fails=True)
    found["the same command again"] = run(several)
    compare(folder / "1", folder / str(WORKERS))
    return found


def compare(one: Path, other: Path) -> None:
    """Raises RuntimeError if the data-bins, models or texts of two outputs differ; records of the runs may differ."""
    folders = ("data-bin*", "models", "text")
    files = [file for folder in folders for file in one.glob(f"{folder}/*") if not file.name.endswith(".index.npy")]
    names = sorted(file.relative_to(one) for file in files)
    _, different, missing = filecmp.cmpfiles(one, other, names, shallow=False)
    if different or missing:
        raise RuntimeError(f"different: {different}, missing: {missing}")


# --- Translating ---


def translate_text(folder: Path, args: argparse.Namespace) -> dict[str, float]:
    """Returns the seconds of translating in one process, and on a Ray cluster with a kill and a removed node.

    Raises:
        RuntimeError: outputs differ.
    """
    from ray.cluster_utils import Cluster

    source = folder / "source"
    text = (args.demo / "corpus" / "test.src").read_text(encoding="utf-8").strip("\n")
    sentences = sum(map(bool, text.splitlines()))
    source.write_text(f"{text}\n\n" * -(-args.lines // sentences), encoding="utf-8")
    common = ["translate", "--path", args.demo / "conditional" / "checkpoint_last.pt", "--data", args.demo / "data"]
    common += ["--input", source, "--beam", 4, "--cpu"]
    found = {"one process": run([*common, "--output", folder / "one"])}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    node = cluster.add_node(num_cpus=1)
    ray = [*common, "--output", folder / "ray"]
    ray += ["--engine", "ray", "--workers", WORKERS, "--ray-address", cluster.address]
    try:
        found["two nodes"] = run(ray)
        check_equal(folder / "one", folder / "ray")
        started = time.perf_counter()
        process = start([*ray, "--force"])
        time.sleep(args.kill_after)
        os.kill(found_by("-f", f"{folder / 'ray'} .*--shard")[0], signal.SIGKILL)
        time.sleep(args.kill_after)
        cluster.remove_node(node)
        waiting(process)
        found["two nodes, a worker killed, then a node removed"] = time.perf_counter() - started
    finally:
        cluster.shutdown()
    check_equal(folder / "one", folder / "ray")
    return found


def check_equal(one: Path, other: Path) -> None:
    """Raises RuntimeError if two files differ."""
    if not filecmp.cmp(one, other, shallow=False):
        raise RuntimeError(f"{one.name} and {other.name} differ")


# --- Processes ---


def start(arguments: list) -> "subprocess.Popen[str]":
    """Starts a command of docnmt with one thread per process."""
    words = [sys.executable, "-m", "docnmt_fairseq", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def run(arguments: list) -> float:
    """Runs a command of docnmt and returns its seconds."""
    return waiting(start(arguments))


def waiting(process: "subprocess.Popen[str]", fails: bool = False) -> float:
    """Waits for a process and returns the seconds.

    Raises:
        RuntimeError: it failed, or did not although ``fails``.
    """
    started = time.perf_counter()
    _, messages = process.communicate()
    if bool(process.returncode) != fails:
        raise RuntimeError(f"status {process.returncode}: {messages[-2000:]}")
    return time.perf_counter() - started


def found_by(*condition: str) -> list[int]:
    """Returns the processes that fulfil a condition of pgrep."""
    return list(
        map(int, subprocess.run(["pgrep", *condition], capture_output=True, text=True, check=True).stdout.split())
    )


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    amounts: dict[str, Callable[[], str]] = {
        "prepare": lambda: f"`docnmt prepare --shards 8`, {args.pairs:,} pairs of {LENGTH:.0f} words",
        "translate": lambda: f"`docnmt translate`, {args.lines:,} sentences of the demo, conditional attention, beam 4",
    }
    rows = [
        [amounts[task](), name, f"{seconds:.0f}"] for task, runs in figures.items() for name, seconds in runs.items()
    ]
    return [
        table(["work", "run", "seconds"], rows, numbers=False),
        "Every process has one thread. The outputs of all runs have the same bytes.",
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.parallel"))

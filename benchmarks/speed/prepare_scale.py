"""Time and memory of ``docnmt prepare --shards`` over corpora of millions of sentence pairs.

    python -m benchmarks.speed.prepare_scale [--pairs 1000000 10000000] [--engines processes ray] [--folder DIR]

Makes each corpus of artificial words (``--pool`` different sentences, drawn again and again) and deletes it with all
that was made of it. Binarising alone is compared with fairseq-preprocess over the same tokens. Writes
benchmarks/results/prepare_scale.md and .json; runs of other sizes, engines or workers that stand there stay.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from itertools import chain
from pathlib import Path
from typing import Dict, Iterator, List

import numpy as np

from benchmarks.lib.machine import RESULTS, ROOT, command, machine, publish, table

WORDS, SYLLABLES = 60_000, 150
SENTENCES = (8, 41)  # of a document, the last not included
LENGTH = 20.0  # words of a sentence on average
GOAL, GOAL_MEMORY = 14_000, 4  # pairs a second: 50 million in an hour; GB
POLL = 0.5  # seconds between two looks at memory


def make_pool(sentences: int, seed: int) -> List[str]:
    """Returns sentences of artificial words, frequent and rare as words of languages are."""
    rng = np.random.default_rng(seed)
    consonants, vowels = list("bdfghklmnprstvw"), ["a", "e", "i", "o", "u", "ä", "ie", "au"]
    syllables = [a + b for a in consonants for b in vowels][:SYLLABLES]
    lengths = rng.integers(1, 5, WORDS)
    drawn = iter(rng.integers(0, len(syllables), int(lengths.sum())).tolist())
    words = ["".join(syllables[next(drawn)] for _ in range(length)) for length in lengths.tolist()]
    shares = 1 / np.arange(2, WORDS + 2)
    sizes = rng.poisson(LENGTH, sentences) + 1
    chosen = iter(rng.choice(WORDS, int(sizes.sum()), p=shares / shares.sum()).tolist())
    return [" ".join([words[next(chosen)] for _ in range(size)]).capitalize() + " ." for size in sizes.tolist()]


def write_corpus(prefix: Path, pairs: int, pool: List[List[str]], seed: int = 1) -> int:
    """Writes ``prefix``.en and .de of so many sentence pairs in documents, and returns the bytes."""
    rng, left = np.random.default_rng(seed), pairs
    with open(f"{prefix}.en", "w", encoding="utf-8") as source, open(f"{prefix}.de", "w", encoding="utf-8") as target:
        while left:
            size = min(left, int(rng.integers(*SENTENCES)))
            numbers = rng.integers(0, len(pool[0]), size).tolist()
            for stream, sentences in zip((source, target), pool):
                stream.write("\n".join([sentences[number] for number in numbers]) + "\n\n")
            left -= size
    return sum(Path(f"{prefix}.{side}").stat().st_size for side in ("en", "de"))


def run(words: List[str]) -> Dict[str, float]:
    """Runs a command line; its seconds, and the most memory that it and its children had at one time, in bytes."""
    started = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(POLL):
            peak[0] = max(peak[0], memory_of(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, told = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        raise RuntimeError(told.decode("utf-8", "replace")[-2000:])
    return {"seconds": time.perf_counter() - started, "bytes": peak[0]}


def memory_of(pid: int) -> int:
    """The memory of a process and all that it started, shared pages shared out, without mapped files; in bytes."""
    total = 0
    for one in (pid, *_descendants(pid)):
        try:
            rows = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue  # it has ended
        total += sum(int(row.split()[1]) * 1024 for row in rows if row.startswith("Pss_Anon:"))
    return total


def _descendants(pid: int) -> Iterator[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return
    for child in children:
        yield child
        yield from _descendants(child)


def docnmt(*arguments: object) -> List[str]:
    """The command line of a subcommand."""
    return [sys.executable, "-m", "docnmt_fairseq", *map(str, arguments)]


def measure(folder: Path, pairs: int, engine: str, args: argparse.Namespace, pool: List[List[str]]) -> dict:
    """Prepares one corpus; its figures."""
    size = write_corpus(folder / "train", pairs, pool)
    words = docnmt(
        "prepare", "-s", "en", "-t", "de", "--train", folder / "train", "--output", folder / "out", "--vocab-size",
        args.vocab_size, "--shards", args.shards, "--sample-documents", args.sample_documents, "--workers",
        args.workers,
    )  # fmt: skip
    fit = run([*words, "--fit-only"])
    bins = run([*words, "--engine", engine])
    written = sum(file.stat().st_size for file in folder.glob("out/data-bin*/*"))
    shutil.rmtree(folder / "out")
    seconds = fit["seconds"] + bins["seconds"]
    peak = max(fit["bytes"], bins["bytes"])
    return {
        "pairs": pairs, "engine": engine, "workers": args.workers, "text_bytes": size, "data_bin_bytes": written,
        "fit": fit, "bins": bins, "pairs_a_second": pairs / seconds, "peak_bytes": peak, "command": command(),
    }  # fmt: skip


def binarising(folder: Path, pool: List[List[str]], lines: int) -> Dict[str, float]:
    """Seconds of binarising one side's tokens: by fairseq-preprocess with one worker, and here."""
    from fairseq.data import Dictionary

    from benchmarks.lib.preprocess import fairseq_preprocess
    from docnmt_fairseq.corpus.binarise import SplitItems, binarise, items_of_files
    from docnmt_fairseq.corpus.dictionaries import dictionary_from_model
    from docnmt_fairseq.corpus.shares import Held
    from docnmt_fairseq.corpus.subwords import SubwordOptions, subword_encoder, train_subword_model
    from docnmt_fairseq.corpus.transform import transform_file

    write_corpus(folder / "text", lines, [one[: lines + 1] for one in pool])
    options_of_model = SubwordOptions(vocab_size=2000)
    train_subword_model([folder / "text.en"], folder / "model", options_of_model)
    dictionary_from_model(folder / "model", folder / "dict.en.txt")
    transform_file(folder / "text.en", folder / "tokens.en", subword_encoder(folder / "model"))
    held = (folder / "tokens.en").read_text(encoding="utf-8").split("\n")[:-1]
    arguments = ["--source-lang", "en", "--target-lang", "de", "--only-source", "--trainpref", str(folder / "tokens")]
    arguments += ["--srcdict", str(folder / "dict.en.txt"), "--destdir", str(folder / "theirs"), "--workers", "1"]
    started = time.process_time()
    fairseq_preprocess(arguments)
    theirs = time.process_time() - started
    started = time.process_time()
    dictionary = Dictionary.load(str(folder / "dict.en.txt"))
    text = SplitItems(Held(len(held), held.count("")), lambda: items_of_files([folder / "tokens.en"], [dictionary]))
    binarise(folder / "ours", {"en": dictionary}, {"train": text}, {})
    ours = time.process_time() - started
    found = (folder / "ours" / "train.en.en.bin").read_bytes()
    assert found == (folder / "theirs" / "train.en-de.en.bin").read_bytes()
    return {"lines": len(held), "tokens": len(found) // 2, "fairseq-preprocess": theirs, "here": ours}


def report(runs: List[dict], alone: Dict[str, float], args: argparse.Namespace) -> str:
    """Returns the report."""
    header = [
        "pairs",
        "engine",
        "jobs at once",
        "text, GB",
        "dealing out and learning, s",
        "data-bins, s",
        "pairs a second, in all",
    ]
    header += ["data-bins alone", "peak memory, GB", "data-bins, GB"]
    rows = []
    for one in runs:
        times = [f"{one[part]['seconds']:.0f}" for part in ("fit", "bins")]
        speeds = [f"{one['pairs_a_second']:,.0f}", f"{one['pairs'] / one['bins']['seconds']:,.0f}"]
        sizes = [f"{one[name] / 1e9:.2f}" for name in ("text_bytes", "peak_bytes", "data_bin_bytes")]
        rows.append([f"{one['pairs']:,}", one["engine"], one["workers"], sizes[0], *times, *speeds, *sizes[1:]])
    ratio = alone["fairseq-preprocess"] / alone["here"]
    parts = [
        "# Preparing large corpora",
        "  \n".join([*(f"`{words}`" for words in dict.fromkeys(one["command"] for one in runs)), machine()]),
        table(header, rows),
        f"{args.shards} shards, jobs of one thread each; a joint model of {args.vocab_size:,} "
        f"pieces, learnt from {args.sample_documents:,} documents; sentences of {LENGTH:.0f} words on average, "
        f"{args.pool:,} different ones. Memory is that of all processes together, without mapped files.",
        goal(runs),
        f"Binarising alone, {alone['tokens']:,} tokens in {alone['lines']:,} lines, CPU time: fairseq-preprocess "
        f"{alone['fairseq-preprocess']:.1f} s, here {alone['here']:.2f} s, {ratio:.0f} times as fast, the same bytes.",
    ]
    return "\n\n".join(part for part in parts if part)


def goal(runs: List[dict]) -> str:
    """Says how the largest run compares with what was wanted."""
    largest = max(runs, key=lambda one: one["pairs"])
    return (
        f"Wanted: 50 million pairs in an hour on two cores, {GOAL:,} pairs a second, in {GOAL_MEMORY:.0f} GB. "
        f"{largest['pairs']:,} pairs with {largest['workers']} at once: {largest['pairs_a_second']:,.0f} pairs a "
        f"second, {largest['peak_bytes'] / 1e9:.2f} GB."
    )


def with_earlier(runs: List[dict], results: Path) -> List[dict]:
    """Returns runs in order of size, and those of other settings that were published before."""

    def setting(one: dict) -> tuple:
        return one["pairs"], one["engine"], one["workers"]

    before = json.loads(results.read_text(encoding="utf-8"))["runs"] if results.exists() else []
    kept = {setting(one): one for one in [*before, *runs]}
    return [kept[key] for key in sorted(kept)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--engines", nargs="+", default=["processes"], help="all of them with the first of --pairs")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--sample-documents", type=int, default=10_000)
    parser.add_argument("--pool", type=int, default=300_000, help="different sentences a side")
    parser.add_argument("--binarise-lines", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes (default: the system's)")
    args = parser.parse_args()
    pool = [make_pool(args.pool, seed) for seed in (1, 2)]
    runs = []
    wanted = chain(((args.pairs[0], engine) for engine in args.engines[1:]), ((n, args.engines[0]) for n in args.pairs))
    for pairs, engine in wanted:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            print(f"{pairs:,} pairs, {engine}", file=sys.stderr)
            runs.append(measure(Path(folder), pairs, engine, args, pool))
            print(runs[-1], file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        alone = binarising(Path(folder), pool, args.binarise_lines)
    runs = with_earlier(runs, RESULTS / "prepare_scale.json")
    publish("prepare_scale", report(runs, alone, args), runs=runs, binarising=alone)


if __name__ == "__main__":
    main()

"""Time and memory of finding the documents of a corpus of tens of millions of lines.

    python -m benchmarks.speed.indexing [--lines 50000000] [--folder DIR]

Makes a data-bin side in a temporary folder (about 44 bytes a line), then indexes it as both sides of a corpus in a
fresh process, as ``document_translation`` does when it loads a split. Writes benchmarks/results/indexing.md.
"""

import argparse
import json
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.lib.machine import ROOT, command, machine, table, write

PAD, EOS, PARAGRAPH, VOCABULARY = 1, 2, 4, 32000
CHUNK_DOCUMENTS = 25_000  # about a million lines
TARGET_SECONDS, TARGET_GB = 20.0, 2.0


def line_lengths(rng: np.random.Generator, documents: int) -> "tuple[np.ndarray, np.ndarray]":
    """Returns the tokens of every line of some documents, [lines], and which lines are ``<p>``."""
    ends = np.cumsum(rng.integers(20, 61, documents)) - 1
    sizes = rng.integers(2, 31, ends[-1] + 1, dtype=np.int32)
    is_end = np.zeros(len(sizes), dtype=bool)
    is_end[ends] = True
    drawn = rng.random(len(sizes)) < 0.1
    paragraph = drawn & ~is_end
    paragraph[0] = False
    paragraph[1:] &= ~drawn[:-1] & ~is_end[:-1]  # it must end something
    sizes[is_end] = 1
    sizes[paragraph] = 2
    return sizes, paragraph


def tokens_of(rng: np.random.Generator, sizes: np.ndarray, paragraph: np.ndarray) -> np.ndarray:
    """Returns the tokens of lines one after another: words, ``<p>`` where it stands, the end of every line."""
    last = np.cumsum(sizes) - 1
    tokens = rng.integers(PARAGRAPH + 1, VOCABULARY, last[-1] + 1, dtype=np.uint16)
    tokens[last] = EOS
    tokens[last[paragraph] - 1] = PARAGRAPH
    return tokens


def make_side(prefix: Path, lines: int, seed: int = 1) -> None:
    """Writes ``prefix``.bin and .idx in fairseq's mmap format, a million lines at a time."""
    rng, left = np.random.default_rng(seed), lines
    header = b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 8, lines)  # 8: unsigned integers of 16 bits
    with open(f"{prefix}.bin", "wb") as data, open(f"{prefix}.idx", "w+b") as index:
        index.write(header)
        while left:
            sizes, paragraph = line_lengths(rng, CHUNK_DOCUMENTS)
            sizes, paragraph = sizes[:left], paragraph[:left]
            if left == len(sizes):
                sizes[-1], paragraph[-1] = 1, False  # the corpus ends with the end of a document
            tokens_of(rng, sizes, paragraph).tofile(data)
            sizes.tofile(index)
            left -= len(sizes)
        index.flush()
        sizes = np.memmap(index, np.int32, "r", len(header), lines)
        first = 0
        index.seek(0, 2)
        for start in range(0, lines, 1 << 20):
            ends = np.cumsum(sizes[start : start + (1 << 20)], dtype=np.int64) * 2 + first
            np.concatenate([[first], ends[:-1]]).tofile(index)
            first = int(ends[-1])


class PeakOfOwnMemory(threading.Thread):
    """Samples the process's anonymous memory: without pages of the files, which the system takes back at need."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = 0

    def sample(self) -> None:
        """Takes note of the memory in use now."""
        with open("/proc/self/status", encoding="ascii") as status:
            self.peak = max(self.peak, *(int(line.split()[1]) for line in status if line.startswith("RssAnon")), 0)

    def run(self) -> None:
        """Samples until the process ends."""
        while True:
            self.sample()
            time.sleep(0.005)


def measure(prefix: str) -> dict:
    """Returns the seconds of every step and peaks of memory in GB, with ``prefix`` as source and target."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    from docnmt_fairseq.data.dataset import DocumentDataset
    from docnmt_fairseq.data.index import DocumentIndex, Marks, check_parallel
    from docnmt_fairseq.data.pieces import PieceLimits
    from docnmt_fairseq.data.split import Split

    memory, seconds, peaks = PeakOfOwnMemory(), {}, {}
    memory.sample()
    before = memory.peak  # the libraries
    memory.start()

    def timed(name: str, function, *args, **options):
        start = time.perf_counter()
        result = function(*args, **options)
        seconds[name] = time.perf_counter() - start
        memory.sample()
        peaks[name] = memory.peak / 1e6
        return result

    source, target = timed("fairseq opens both sides", lambda: [MMapIndexedDataset(prefix) for _ in range(2)])
    marks = timed("Marks.read, source", Marks.read, source, PARAGRAPH)
    other = timed("Marks.read, target", Marks.read, target, PARAGRAPH)
    timed("check_parallel", check_parallel, marks, other, "benchmark")
    index = timed("DocumentIndex.build", DocumentIndex.build, marks, "benchmark")
    del marks, other
    view = (PAD, EOS, PieceLimits(128, 4096))
    split = Split(source, target, index)
    dataset = timed("DocumentDataset (pieces)", DocumentDataset, split, *view, shuffle=True)
    order = dataset.ordered_indices()
    indexing = dict(seconds)
    batches = timed("an epoch's batches of 4,096 tokens", dataset.batch_by_size, order, max_tokens=4096)
    memory.sample()
    return {
        "indexing": indexing,
        "batching": {name: value for name, value in seconds.items() if name not in indexing},
        "peaks": peaks,
        "libraries_gb": before / 1e6,
        "resident_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "counts": [len(index), len(index.paragraphs), len(index.items), len(dataset), len(batches)],
    }


def report(lines: int, result: dict) -> str:
    """Returns the report."""
    steps, peaks = {**result["indexing"], **result["batching"]}, result["peaks"]
    # Opening is fairseq's: it reads both files through once, so that they are in the system's cache.
    total = sum(result["indexing"].values())
    own = max(peak for name, peak in peaks.items() if name in result["indexing"])
    rows = [[name, f"{value:.2f}", f"{peaks[name]:.2f}"] for name, value in steps.items()]
    rows.insert(len(result["indexing"]), ["**all of indexing**", f"**{total:.2f}**", f"**{own:.2f}**"])
    met = "met" if total < TARGET_SECONDS and own < TARGET_GB else "missed"
    names = ("documents", "paragraphs", "sentences", "pieces", "batches")
    counts = ", ".join(f"{count:,} {name}" for name, count in zip(names, result["counts"]))
    return "\n\n".join(
        [
            f"# Indexing a corpus of {lines:,} lines",
            f"`{command()}`  \n{machine()}",
            table(["step", "seconds", "peak memory so far, GB"], rows),
            f"{counts}.",
            f"Memory is the process's own (anonymous) memory, {result['libraries_gb']:.2f} GB of it Python and the "
            f"libraries. Counting also pages of the memory-mapped files, which the system takes back at need, the "
            f"process peaked at {result['resident_gb']:.2f} GB (both sides are mapped apart).",
            f"Target for all of indexing, under {TARGET_SECONDS:.0f} s and {TARGET_GB:.0f} GB: {met}.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=50_000_000, help="lines, marks included (default: 50 million)")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes (default: the system's)")
    parser.add_argument("--measure", metavar="PREFIX", help=argparse.SUPPRESS)  # the fresh process
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.measure)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        print(f"making {args.lines:,} lines", file=sys.stderr)
        make_side(Path(folder) / "side", args.lines)
        print("indexing them in a fresh process", file=sys.stderr)
        child = [sys.executable, "-m", __spec__.name, "--measure", str(Path(folder) / "side")]
        output = subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    write("indexing.md", report(args.lines, json.loads(output.splitlines()[-1])))


if __name__ == "__main__":
    main()

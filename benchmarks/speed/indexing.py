"""Time and memory of finding the documents of a corpus with tens of millions of lines.

    python -m benchmarks.speed.indexing [--lines 50000000] [--folder DIR]

Writes one side of a data-bin with random tokens (about 44 bytes per line), then indexes it as source and target in a
new process, as the task does when it loads a split.
"""

import argparse
import json
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.lib.measuring import child_output, run_benchmark
from benchmarks.lib.reporting import table

TITLE = "Indexing a large corpus"
PAD, EOS, PARAGRAPH, VOCABULARY = 1, 2, 4, 32000
CHUNK_DOCUMENTS = 25_000  # about a million lines


def line_lengths(rng: np.random.Generator, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the number of tokens of every line [lines], and whether it is a paragraph boundary."""
    ends = np.cumsum(rng.integers(20, 61, documents)) - 1
    sizes = rng.integers(2, 31, ends[-1] + 1, dtype=np.int32)
    is_end = np.zeros(len(sizes), dtype=bool)
    is_end[ends] = True
    drawn = rng.random(len(sizes)) < 0.1
    paragraph = drawn & ~is_end
    paragraph[0] = False
    paragraph[1:] &= ~drawn[:-1] & ~is_end[:-1]  # no empty paragraphs
    sizes[is_end] = 1
    sizes[paragraph] = 2
    return sizes, paragraph


def tokens_of(rng: np.random.Generator, sizes: np.ndarray, paragraph: np.ndarray) -> np.ndarray:
    """Returns the tokens of consecutive lines."""
    last = np.cumsum(sizes) - 1
    tokens = rng.integers(PARAGRAPH + 1, VOCABULARY, last[-1] + 1, dtype=np.uint16)
    tokens[last] = EOS
    tokens[last[paragraph] - 1] = PARAGRAPH
    return tokens


def make_side(prefix: Path, lines: int, seed: int = 1) -> None:
    """Writes ``prefix``.bin and .idx in fairseq's mmap format."""
    rng, left = np.random.default_rng(seed), lines
    header = b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 8, lines)  # 8: uint16
    with open(f"{prefix}.bin", "wb") as data, open(f"{prefix}.idx", "w+b") as index:
        index.write(header)
        while left:
            sizes, paragraph = line_lengths(rng, CHUNK_DOCUMENTS)
            sizes, paragraph = sizes[:left], paragraph[:left]
            if left == len(sizes):
                sizes[-1], paragraph[-1] = 1, False  # the last line ends a document
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


class PeakMemory(threading.Thread):
    """Samples the anonymous memory of the process, which excludes pages of memory-mapped files."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak = 0  # bytes

    def sample(self) -> None:
        """Updates the peak."""
        with open("/proc/self/status", encoding="ascii") as status:
            sizes = [1024 * int(line.split()[1]) for line in status if line.startswith("RssAnon")]
        self.peak = max(self.peak, *sizes, 0)

    def run(self) -> None:
        """Samples until the process exits."""
        while True:
            self.sample()
            time.sleep(0.005)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.add_argument("--lines", type=int, default=50_000_000, help="lines with boundaries (default: 50 million)")
    parser.add_argument("--folder", type=Path, help="parent of the temporary folder")


def child(args: argparse.Namespace) -> None:
    """Prints seconds and peak memory of every step, with a prefix as source and target."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    from docnmt_fairseq.data.chunking import ChunkLimits
    from docnmt_fairseq.data.dataset import DocumentDataset
    from docnmt_fairseq.data.index import DocumentIndex, Marks, Split, check_parallel

    memory, steps = PeakMemory(), {}
    memory.start()

    def timed(name: str, function, *arguments, **options):
        start = time.perf_counter()
        result = function(*arguments, **options)
        memory.sample()
        steps[name] = [time.perf_counter() - start, memory.peak]
        return result

    source, target_ = timed("open both sides (fairseq)", lambda: [MMapIndexedDataset(args.child[0]) for _ in range(2)])
    marks = timed("read boundaries, source", Marks.read, source, PARAGRAPH)
    other = timed("read boundaries, target", Marks.read, target_, PARAGRAPH)
    timed("compare boundaries", check_parallel, marks, other, "benchmark")
    index = timed("build the index", DocumentIndex.build, marks, "benchmark")
    del marks, other
    arguments = (Split(source, target_, index), PAD, EOS, ChunkLimits(128, 4096))
    dataset = timed("data set", DocumentDataset, *arguments, shuffle=True)
    order = dataset.ordered_indices()
    batches = timed("batches of 4,096 tokens", dataset.batch_by_size, order, max_tokens=4096)
    counts = {"documents": len(index), "sentences": len(index.items), "chunks": len(dataset), "batches": len(batches)}
    print(json.dumps({"steps": steps, "counts": counts}))


def measure(args: argparse.Namespace) -> dict:
    """Returns seconds and peak memory of every step, and counts."""
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        make_side(Path(folder) / "side", args.lines)
        return json.loads(child_output(__name__, "--child", Path(folder) / "side"))


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    indexing = [values for name, values in figures["steps"].items() if not name.startswith("batches")]
    total, peak = sum(seconds for seconds, _ in indexing), max(size for _, size in indexing)
    rows = [[name, f"{seconds:.2f}", f"{size / 1e9:.2f}"] for name, (seconds, size) in figures["steps"].items()]
    counts = ", ".join(f"{count:,} {name}" for name, count in figures["counts"].items())
    return [
        f"{args.lines:,} lines: {counts}. Memory is anonymous memory of the process.",
        table(["step", "seconds", "peak memory so far, GB"], rows),
        f"Indexing: {total:.1f} s, {peak / 1e9:.2f} GB.",
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.indexing"))

"""Time and memory of sentence vectors for a million sentences, and of finding similar sentences in a data-bin.

    python -m benchmarks.speed.sentence_vectors [--sentences 1000000] [--folder DIR]

Makes word vectors, a text and a data-bin in a temporary folder (about 1.3 GB), then fits, writes vectors and finds
neighbours, each in a fresh process of ``docnmt embed``. Writes benchmarks/results/sentence_vectors.md.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.lib.machine import command, machine, table, write
from benchmarks.speed.indexing import make_side

VOCABULARY, WIDTH, LONGEST = 32_000, 200, 40
SENTENCES_OF_A_DOCUMENT = 40
COMMAND = [sys.executable, "-c", "from docnmt_fairseq.cli import main; raise SystemExit(main())", "embed"]


def make(folder: Path, sentences: int, seed: int = 1) -> float:
    """Writes vectors, text and data-bin; returns the mean length of a sentence, whose words follow Zipf's law."""
    rng = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(VOCABULARY)]
    with open(folder / "vectors.txt", "w", encoding="ascii") as stream:
        for word in words:
            stream.write(f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=WIDTH))}\n")
    probability = 1 / np.arange(1, VOCABULARY + 1)
    total = 0
    with open(folder / "text", "w", encoding="ascii") as stream:
        for start in range(0, sentences, 10_000):
            lengths = rng.integers(1, LONGEST, min(10_000, sentences - start))
            drawn = iter(rng.choice(VOCABULARY, lengths.sum(), p=probability / probability.sum()).tolist())
            for number, length in enumerate(lengths.tolist(), start=start + 1):
                stream.write(" ".join([words[next(drawn)] for _ in range(length)]) + "\n")
                if number % SENTENCES_OF_A_DOCUMENT == 0:
                    stream.write("\n")
            total += int(lengths.sum())
    (folder / "bin").mkdir()
    symbols = "".join(f"{word} 1\n" for word in words)
    (folder / "bin" / "dict.x.txt").write_text(symbols, encoding="ascii")
    make_side(folder / "bin" / "train.x-y.x", sentences)
    return total / sentences


def timed(name: str, *arguments: object) -> list:
    """Returns a row: a command, its seconds of wall and CPU, and the peak so far of such a process's memory in GB."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMMAND, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [name, f"{seconds:.1f}", f"{own:.1f}", f"{after.ru_maxrss / 1e6:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1_000_000, help="in the text (default: a million)")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes (default: the system's)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        length = make(folder, args.sentences)
        text, model = folder / "text", folder / "model.npz"
        fit = ("fit", "--vectors", folder / "vectors.txt", "--corpus", text, "--output", model, "--method")
        rows = [timed(f"fit --method {method}", *fit, method) for method in ("average", "sif", "ca-sem")]
        rows += [
            timed("transform", "transform", "--model", model, "--input", text, "--output", folder / "vectors.npy"),
            timed("neighbours", "neighbours", folder / "bin", "--model", model),
        ]
    write(
        "sentence_vectors.md",
        "\n\n".join(
            [
                f"# Sentence vectors of {args.sentences:,} sentences",
                f"`{command()}`  \n{machine()}",
                table(["docnmt embed", "seconds", "CPU seconds", "peak memory so far, GB"], rows),
                f"{VOCABULARY:,} word vectors of width {WIDTH}, read from text; sentences of {length:.1f} words on "
                "average, their vectors written as float32. The data-bin of `neighbours` has as many lines in "
                "documents of 20 to 60; 10 similar sentences are kept of each. Whole processes, the start of Python "
                "included; wall time grows with whatever else the machine does. Memory counts pages of the "
                "memory-mapped output, which the system takes back at need.",
            ]
        ),
    )


if __name__ == "__main__":
    main()

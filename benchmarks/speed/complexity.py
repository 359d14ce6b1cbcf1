"""Time and peak memory of the layer types of [T] Table 1 against sentences and words, and their exponents.

    python -m benchmarks.speed.complexity [--layers tree conditional …] [--heads 8] [--head-dim 64] [--kernel auto]

A step is forward and backward on one document. Time is CPU time on one thread, the least of some steps: other work on
the machine can only add to it. Freed memory is kept, as GPUs' allocators do (Linux, glibc). Peak memory is measured in
a process of its own for every point, beyond the inputs. Exponents are slopes of straight lines through the logarithms.
Writes complexity.md, .json and .png to benchmarks/results, or to --results.
"""

import argparse
import math
from pathlib import Path

import torch
from tqdm import tqdm

from benchmarks.lib.machine import RESULTS, clock, command, keep_freed_memory, machine, write, write_figures
from benchmarks.lib.peak_memory import peak_of, print_peak
from benchmarks.speed.complexity_report import plot, report
from benchmarks.speed.layers import LAYERS, Document, step

SENTENCES = [2**k for k in range(5, 13)]  # of WORDS words
WORDS = 25
SENTENCE_WORDS = [16, 32, 64, 128]  # in AT_SENTENCES sentences
AT_SENTENCES = 32
FIRST_SECONDS, STEPS = 2.0, 5  # a point is measured so long or so many times, whichever comes first


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", nargs="+", default=list(LAYERS), choices=list(LAYERS))
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--kernel", default="auto", help="of the selecting layers, see --context-kernel")
    parser.add_argument("--most-sentences", type=int, default=SENTENCES[-1], help="leave larger documents out")
    parser.add_argument("--seconds", type=float, default=FIRST_SECONDS, help="that a point is measured at most")
    parser.add_argument("--without-memory", action="store_true", help="measure no memory")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    parser.add_argument("--memory-of", nargs=3, metavar=("LAYER", "SENTENCES", "WORDS"), help=argparse.SUPPRESS)
    return parser.parse_args()


def document(sentences: int, words: int, args: argparse.Namespace) -> Document:
    return Document(sentences, words, args.heads, args.head_dim, args.kernel)


def seconds(call: object, most: float) -> float:
    """Returns the CPU seconds of the fastest of some calls; the first, not counted, makes plans and buffers."""
    times, spent = [], 0.0
    for number in range(STEPS + 1):
        start = clock()
        call()
        taken = clock() - start
        if number:
            times.append(taken)
        spent += taken
        if times and spent > most:
            break
    return min(times)


def print_peak_memory(args: argparse.Namespace) -> None:
    name, sentences, words = args.memory_of[0], *map(int, args.memory_of[1:])
    step(name, document(8, 4, args), False)()  # loads what is loaded at first use
    print_peak(step(name, document(sentences, words, args), False))


def peak_memory(name: str, sentences: int, words: int, args: argparse.Namespace) -> int:
    sizes = ["--heads", args.heads, "--head-dim", args.head_dim, "--kernel", args.kernel]
    return peak_of(__spec__.name, *sizes, "--memory-of", name, sentences, words)


def exponent(points: list, size: str, value: str) -> float:
    """Returns the slope of log value against log size; nan with fewer than two points."""
    known = [point for point in points if point.get(value)]
    x, y = ([math.log(point[key]) for point in known] for key in (size, value))
    if len(x) < 2:
        return math.nan
    middle = sum(x) / len(x)
    return sum((a - middle) * b for a, b in zip(x, y)) / sum((a - middle) ** 2 for a in x)


def measure_point(name: str, sentences: int, words: int, args: argparse.Namespace) -> dict:
    """Returns seconds of the core and of the whole layer (None: there is none) and the core's peak memory."""
    d = document(sentences, words, args)
    whole = step(name, d, True)
    return {
        "sentences": sentences,
        "words": words,
        "core": seconds(step(name, d, False), args.seconds),
        "layer": None if whole is None else seconds(whole, args.seconds),
        "memory": None if args.without_memory else peak_memory(name, sentences, words, args),
    }


def measure(args: argparse.Namespace) -> dict:
    """Returns the points of every layer: in n, and in m."""
    result = {}
    for name in tqdm(args.layers, desc="layers"):
        most = min(LAYERS[name].most_sentences, args.most_sentences)
        in_n = [measure_point(name, n, WORDS, args) for n in SENTENCES if n <= most]
        in_m = [measure_point(name, AT_SENTENCES, m, args) for m in SENTENCE_WORDS]
        result[name] = {"in_n": in_n, "in_m": in_m, "exponents": exponents(in_n, in_m)}
    return result


def exponents(in_n: list, in_m: list) -> dict:
    kinds = ("core", "layer", "memory")
    of_n = {f"{kind} n": exponent(in_n, "sentences", kind) for kind in kinds}
    of_m = {f"{kind} m": exponent(in_m, "words", kind) for kind in kinds}
    up_to_512 = [point for point in in_n if point["sentences"] <= 512]
    return {**of_n, **of_m, "core n ≤ 512": exponent(up_to_512, "sentences", "core")}


def main() -> None:
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    if args.memory_of:
        return print_peak_memory(args)
    keep_freed_memory()
    result = measure(args)
    facts = {"command": command(), "machine": machine(), "heads": args.heads, "head_dim": args.head_dim}
    write_figures("complexity.json", {**facts, "layers": result}, args.results)
    write("complexity.md", report(args, result), args.results)
    plot(result, args.results / "complexity.png")


if __name__ == "__main__":
    main()

"""Times the kernels of conditional attention as ratios to flash attention over the whole document.

    python -m benchmarks.speed.conditional_attention [--t 2 4 8] [--kernels compiled torch] [--threads 1]

Steps take turns in one process, medians of their ratios are reported: absolute times mean little, ratios do. Peak
memory is measured in a process of its own for every point, beyond the inputs. Errors are those against the dense
kernel in float64. Writes benchmarks/results/conditional_attention.md, .json and .png.
"""

import argparse
import statistics
from typing import Callable, Dict, List

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks.lib.machine import RESULTS, clock, command, machine, write, write_figures
from benchmarks.lib.peak_memory import peak_of, print_peak
from benchmarks.speed.conditional_attention_report import plot, report
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.selection import KeptSentences

HEADS, DIM, WORDS = 8, 64, 25
SIZES = {8: 15, 32: 9, 64: 7, 128: 5, 256: 3}  # sentences: rounds
MEMORY_SIZES = (8, 128, 256)
ERROR_SENTENCES = 32
PASSES = ("fwd", "fwd + bwd")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", nargs="+", default=["compiled", "torch"])
    parser.add_argument("--t", type=int, nargs="+", default=[2, 4, 8], help="sentences that every word and head keeps")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch (default: 1)")
    parser.add_argument("--memory-of", nargs=4, metavar=("WAY", "SENTENCES", "T", "PASS"), help=argparse.SUPPRESS)
    return parser.parse_args()


def document(sentences: int, seed: int) -> DocumentLayout:
    """Returns one document of sentences of 25 words on average, lognormal lengths."""
    lengths = np.random.default_rng(seed).lognormal(np.log(WORDS) - 0.18, 0.6, sentences).clip(1, 200)
    lengths = np.maximum(1, np.round(lengths * WORDS * sentences / lengths.sum())).astype(np.int64)
    place = np.arange(sentences)
    return DocumentLayout.of(lengths, np.array([sentences]), place, np.zeros_like(place))


def inputs(way: str, layout: DocumentLayout) -> List[Tensor]:
    """Returns q, k, v, q_s [N, H, d_k] and k_s [n, H, d_k]; for flash attention q, k, v [1, H, N, d_k]."""
    words = layout.tokens.total
    shapes = (
        [(1, HEADS, words, DIM)] * 3
        if way == "flash"
        else [(words, HEADS, DIM)] * 4 + [(layout.tokens.rows, HEADS, DIM)]
    )
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def forward(way: str, layout: DocumentLayout, t: int) -> Callable[..., Tensor]:
    if way == "flash":
        return F.scaled_dot_product_attention
    return lambda *x: conditional_attention(*x, layout, KeptSentences(t), kernel=way)


def step(call: Callable[..., Tensor], given: List[Tensor], backward: bool) -> Callable[[], None]:
    """Returns what computes once, from inputs that want a gradient if there is a backward pass."""
    leaves = [x.clone().requires_grad_(backward) for x in given]

    def run() -> None:
        out = call(*leaves)
        if backward:
            torch.autograd.grad(out, leaves, torch.ones_like(out))

    return run


def ratios(sentences: int, t: int, args: argparse.Namespace) -> Dict[str, Dict[str, float]]:
    """Returns by kernel and pass the median ratio to flash attention."""
    layout = document(sentences, seed=0)
    found: Dict[str, Dict[str, float]] = {name: {} for name in args.kernels}
    for part in PASSES:
        steps = {
            way: step(forward(way, layout, t), inputs(way, layout), part != "fwd") for way in ("flash", *args.kernels)
        }
        samples: Dict[str, List[float]] = {name: [] for name in args.kernels}
        for number in range(SIZES[sentences] + 1):
            times = {}
            for way, run in steps.items():
                start = clock()
                run()
                times[way] = clock() - start
            for name in args.kernels if number else ():  # the first round warms up
                samples[name].append(times[name] / times["flash"])
        for name in args.kernels:
            found[name][part] = statistics.median(samples[name])
    return found


def print_memory(args: argparse.Namespace) -> None:
    way, sentences, t, part = args.memory_of
    for size in (2, int(sentences)):  # the first loads what is loaded at first use
        layout = document(size, seed=0)
        run = step(forward(way, layout, int(t)), inputs(way, layout), part != "fwd")
        if size == int(sentences):
            print_peak(run)
        else:
            run()


def memory(sentences: int, t: int, args: argparse.Namespace) -> Dict[str, Dict[str, int]]:
    """Returns by way and pass the peak memory in bytes."""
    return {
        way: {part: peak_of(__spec__.name, "--memory-of", way, sentences, t, part) for part in PASSES}
        for way in ("flash", *args.kernels)
    }


def errors(t: int, args: argparse.Namespace) -> Dict[str, Dict[str, float]]:
    """Returns by kernel and dtype the largest error of outputs and gradients against the dense kernel in float64.

    Relative to the largest magnitude of each. Queries and keys of selection are multiples of 1/8, so that relevance is
    exact in every dtype and all select the same.
    """
    layout = document(ERROR_SENTENCES, seed=0)
    given = inputs("dense", layout)
    given[3:] = [(x * 8).round() / 8 for x in given[3:]]

    def results(name: str, dtype: torch.dtype) -> List[Tensor]:
        leaves = [x.to(dtype, copy=True).requires_grad_() for x in given]
        out = forward(name, layout, t)(*leaves)
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        return [out.detach(), *torch.autograd.grad(out, leaves, weight)]

    exact = results("dense", torch.float64)
    found = {}
    for name in ("dense", *args.kernels):
        found[name] = {
            str(dtype).split(".")[1]: max(
                float((own - one).abs().max() / one.abs().max()) for own, one in zip(results(name, dtype), exact)
            )
            for dtype in (torch.float64, torch.float32, torch.bfloat16)
        }
    return found


def main() -> None:
    args = options()
    torch.set_num_threads(args.threads)
    if args.memory_of:
        return print_memory(args)
    points = [
        {"sentences": sentences, "t": t, "ratios": ratios(sentences, t, args)}
        for sentences in tqdm(SIZES, desc="sizes")
        for t in args.t
    ]
    middle = args.t[len(args.t) // 2]
    peaks = [
        {"sentences": n, "t": middle, "memory": memory(n, middle, args)} for n in tqdm(MEMORY_SIZES, desc="memory")
    ]
    facts = {
        "command": command(),
        "machine": machine(),
        "points": points,
        "memory": peaks,
        "errors": errors(middle, args),
    }
    write_figures("conditional_attention.json", facts)
    write("conditional_attention.md", report(facts, args))
    plot(facts, args, RESULTS / "conditional_attention.png")


if __name__ == "__main__":
    main()

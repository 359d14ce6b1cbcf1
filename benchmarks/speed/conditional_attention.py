"""Time, memory and error of the kernels of conditional attention, compared with flash attention to the whole document.

    python -m benchmarks.speed.conditional_attention [--t 2 4 8] [--kernels compiled torch] [--threads 1]

Steps take turns in one process; the median ratio counts. Peak memory is measured in a new process per point.
"""

import argparse
import statistics
import sys
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks.lib.measuring import by_turns, peak_of, print_peak, run_benchmark, seconds_of
from benchmarks.lib.reporting import table
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.selection import TopT

TITLE = "Conditional attention compared with flash attention to the whole document"
HEADS, DIM, WORDS = 8, 64, 25
SIZES = {8: 15, 32: 9, 64: 7, 128: 5, 256: 3}  # sentences: rounds
MEMORY_SIZES, ERROR_SENTENCES = (8, 128, 256), 32
PASSES = ("fwd", "fwd + bwd")
FLASH, EXACT = "flash", "dense"


def document(words: int, sentences: int, seed: int = 0) -> DocumentLayout:
    """Returns a document whose sentence lengths are lognormal."""
    mean = words / sentences
    lengths = np.random.default_rng(seed).lognormal(np.log(mean) - 0.18, 0.6, sentences).clip(1, 200)
    lengths = np.maximum(1, np.round(lengths * words / lengths.sum())).astype(np.int64)
    place = np.arange(sentences)
    return DocumentLayout.of(lengths, np.array([sentences]), place, np.zeros_like(place))


def inputs(layout: DocumentLayout, flash: bool = False) -> list[Tensor]:
    """Returns q, k, v, q_s [N, H, d_k] and k_s [n, H, d_k]; for flash attention q, k, v [1, H, N, d_k].

    Queries and keys of selection are multiples of 1/8: relevance is then exact in every dtype, and all select the same.
    """
    words, generator = layout.tokens.total, torch.Generator().manual_seed(0)
    shapes = [(1, HEADS, words, DIM)] * 3 if flash else [(words, HEADS, DIM)] * 4 + [(layout.tokens.rows, HEADS, DIM)]
    found = [torch.randn(shape, generator=generator) for shape in shapes]
    return [*found[:3], *((x * 8).round() / 8 for x in found[3:])]


def attention(way: str, layout: DocumentLayout, t: int) -> Callable[..., Tensor]:
    """Returns flash attention, or conditional attention with a kernel."""
    if way == FLASH:
        return F.scaled_dot_product_attention
    return lambda *x: conditional_attention(*x, layout, TopT(t), kernel=way)[0]


def step(way: str, layout: DocumentLayout, t: int, backward: bool) -> Callable[[], None]:
    """Returns a function that computes one step."""
    call = attention(way, layout, t)
    leaves = [x.requires_grad_(backward) for x in inputs(layout, way == FLASH)]

    def run() -> None:
        out = call(*leaves)
        if backward:
            torch.autograd.grad(out, leaves, torch.ones_like(out))

    return run


def errors(way: str, layout: DocumentLayout, t: int, dtype: torch.dtype, device: str = "cpu") -> dict[str, float]:
    """Returns the largest errors of output and gradients relative to the dense kernel in float64.

    Args:
        way: kernel.
        layout: document, on the device.
        t: number of selected sentences.
        dtype: dtype of the kernel.
        device: device of the states.
    """
    given = [x.to(device, dtype) for x in inputs(layout)]

    def results(kernel: str, kind: torch.dtype) -> list[Tensor]:
        leaves = [x.to(kind, copy=True).requires_grad_() for x in given]
        out = attention(kernel, layout, t)(*leaves)
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.device, out.dtype)
        return [out.detach(), *torch.autograd.grad(out, leaves, weight)]

    names = ("output", "dq", "dk", "dv", "dq_s", "dk_s")
    pairs = zip(names, results(way, dtype), results(EXACT, torch.float64))
    return {name: float((own.double() - exact).abs().max() / exact.abs().max()) for name, own, exact in pairs}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.set_defaults(threads=1)
    parser.add_argument("--kernels", nargs="+", default=["compiled", "torch"])
    parser.add_argument("--t", type=int, nargs="+", default=[2, 4, 8], help="numbers of selected sentences")


def child(args: argparse.Namespace) -> None:
    """Prints the peak memory of a step."""
    way, sentences, t, part = args.child
    step(way, document(2 * WORDS, 2), int(t), part != PASSES[0])()  # loads libraries and kernels
    print_peak(step(way, document(int(sentences) * WORDS, int(sentences)), int(t), part != PASSES[0]))


def ratios(sentences: int, t: int, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Returns the median ratio to flash attention by kernel and pass."""
    layout = document(sentences * WORDS, sentences)
    found: dict[str, dict[str, float]] = {name: {} for name in args.kernels}
    for part in PASSES:
        steps = {way: step(way, layout, t, part != PASSES[0]) for way in (FLASH, *args.kernels)}
        times = by_turns({way: lambda run=run: seconds_of(run) for way, run in steps.items()}, SIZES[sentences])
        for name in args.kernels:
            found[name][part] = statistics.median(own / flash for own, flash in zip(times[name], times[FLASH]))
    return found


def measure(args: argparse.Namespace) -> dict:
    """Returns ratios of time, peak memory and errors."""
    middle, ways = args.t[len(args.t) // 2], (FLASH, *args.kernels)
    points = [
        {"sentences": sentences, "t": t, "ratios": ratios(sentences, t, args)}
        for sentences in tqdm(SIZES, desc="sizes", disable=None)
        for t in args.t
    ]
    memory = [
        {
            "sentences": n,
            "t": middle,
            "memory": {
                way: {part: peak_of(__name__, "--child", way, n, middle, part) for part in PASSES} for way in ways
            },
        }
        for n in tqdm(MEMORY_SIZES, desc="memory", disable=None)
    ]
    layout, types = document(ERROR_SENTENCES * WORDS, ERROR_SENTENCES), (torch.float64, torch.float32, torch.bfloat16)
    found = {
        way: {str(dtype).split(".")[1]: max(errors(way, layout, middle, dtype).values()) for dtype in types}
        for way in (EXACT, *args.kernels)
    }
    return {"points": points, "memory": memory, "errors": found}


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    size = lambda sentences: f"{WORDS * sentences:,} ({sentences})"  # noqa: E731
    columns = [(name, part) for name in args.kernels for part in PASSES]
    times = [
        [size(point["sentences"]), point["t"], *(f"{point['ratios'][name][part]:.3f}" for name, part in columns)]
        for point in figures["points"]
    ]
    ways = [(way, part) for way in (FLASH, *args.kernels) for part in PASSES]
    memory = [
        [size(point["sentences"]), *(f"{point['memory'][way][part] / 1e6:,.1f}" for way, part in ways)]
        for point in figures["memory"]
    ]
    dtypes = list(figures["errors"][EXACT])
    errors_ = [[name, *(f"{of_kernel[d]:.1e}" for d in dtypes)] for name, of_kernel in figures["errors"].items()]
    return [
        f"Time ÷ time of PyTorch's flash attention to the whole document, medians of steps by turns; with selection, "
        f"without projections. {HEADS} heads of width {DIM}, float32, sentences of {WORDS} words on average.",
        table(["words (sentences)", "t", *(f"{name}, {part}" for name, part in columns)], times),
        f"Peak memory of a step beyond its inputs in MB, t = {figures['memory'][0]['t']}, one process per point. "
        "Conditional attention has one more gradient, that of the queries of selection (6.6 MB for 3,200 words).",
        table(["words (sentences)", *(f"{way}, {part}" for way, part in ways)], memory),
        f"Largest error of output and gradients relative to the dense kernel in float64, {ERROR_SENTENCES} sentences:",
        table(["kernel", *dtypes], errors_),
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.conditional_attention"))

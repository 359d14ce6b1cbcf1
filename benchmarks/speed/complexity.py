"""Time and memory of the layer types of [T] Table 1 as a function of sentences and words, and their exponents.

    python -m benchmarks.speed.complexity [--layers tree conditional ...] [--heads 8] [--head-dim 64] [--kernel auto]

A step is forward and backward on one document, on one CPU thread; the minimum of several steps counts. Peak memory is
measured in a new process per point. Exponents are slopes of straight lines fitted to the logarithms.
"""

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from benchmarks.lib.measuring import keep_freed_memory, peak_of, print_peak, run_benchmark, seconds_of
from benchmarks.lib.reporting import table
from docnmt_fairseq.batch.layout import DocumentLayout, ToSentences, WithinSentences
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.selection import TopT
from docnmt_fairseq.context.conditional.tree import TreesOfBatch, path_sums
from docnmt_fairseq.layers.attention import SentenceSelfAttention, ragged_attention
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS

TITLE = "Cost of layer types by sentences and words"
TOP_T = 4
SENTENCES, WORDS = [2**k for k in range(5, 13)], 25  # sizes in n, of WORDS words per sentence
SENTENCE_WORDS, AT_SENTENCES = [16, 32, 64, 128], 32  # sizes in m, of AT_SENTENCES sentences
STEPS = 5


@dataclass(frozen=True)
class Layer:
    """Row of the table: name, cost in [T] Table 1, exponents of its leading terms, largest number of sentences."""

    label: str
    cost: str
    exponents: str
    max_sentences: int


LAYERS = {
    "sentence": Layer("self-attention, per sentence", "n·m²", "1; 2", 4096),
    "matrix": Layer("self-attention, whole document, as matrices", "n²·m²", "2; 2", 128),
    "flash": Layer("self-attention, whole document, flash", "n²·m²", "2; 2", 512),
    "encodings": Layer("attention over sentence encodings", "n²·m", "2; 1", 1024),
    "conditional": Layer("conditional", "n²·m + n·t·m²", "1 to 2; 1 to 2", 1024),
    "tree": Layer("hierarchical conditional (tree)", "n·m·t·(log n + m)", "1 and log; 1 to 2", 4096),
    "source2token": Layer("source2token", "n·m", "1; 1", 4096),
}


class Document:
    """Document of n sentences of m words, for H heads of width d_k."""

    def __init__(self, sentences: int, words: int, heads: int, head_dim: int, kernel: str):
        self.sentences, self.heads, self.head_dim, self.kernel = sentences, heads, head_dim, kernel
        lengths = np.full(sentences, words)
        zeros = np.zeros(sentences, dtype=np.int64)
        self.layout = DocumentLayout.of(lengths, np.array([sentences]), np.arange(sentences), zeros)
        self.words, self.kept = self.layout.tokens.total, TopT(TOP_T)

    def random(self, rows: int) -> Tensor:
        """Returns random states [rows, H, d_k] with gradient."""
        return torch.randn(rows, self.heads, self.head_dim, requires_grad=True)


def core(name: str, d: Document) -> Callable[[], Tensor]:
    """Returns the forward pass of attention and selection, from given queries, keys and values."""
    q, k, v, q_s = (d.random(d.words) for _ in range(4))
    k_s = d.random(d.sentences)
    if name == "sentence":
        return lambda: ragged_attention(q, k, v, d.layout.plan(WithinSentences()))
    if name == "matrix":
        scale = math.sqrt(d.head_dim)
        return lambda: torch.softmax(q.transpose(0, 1) @ k.permute(1, 2, 0) / scale, -1) @ v.transpose(0, 1)
    if name == "flash":
        whole = [torch.randn(1, d.heads, d.words, d.head_dim, requires_grad=True) for _ in range(3)]
        return lambda: F.scaled_dot_product_attention(*whole)
    if name == "encodings":
        values = d.random(d.sentences)
        return lambda: ragged_attention(q, k_s, values, d.layout.plan(ToSentences()))
    if name == "conditional":
        return lambda: conditional_attention(q, k, v, q_s, k_s, d.layout, d.kept, kernel=d.kernel)[0]
    if name == "tree":
        trees = d.layout.plan(TreesOfBatch())
        keys = d.random(sum(trees.sizes))

        def forward() -> Tensor:
            choose = lambda kernel: kernel.choose_in_tree(q_s, keys, d.layout, d.kept)  # noqa: E731
            sums = path_sums(keys, trees)[: d.sentences]
            return conditional_attention(q, k, v, q_s, sums, d.layout, d.kept, kernel=d.kernel, choose=choose)[0]

        return forward
    query = d.random(1)

    def encode() -> Tensor:
        weights = d.layout.tokens.softmax((k * query).sum(-1) / math.sqrt(d.head_dim))
        return d.layout.tokens.sum(weights.unsqueeze(-1) * v)

    return encode


def module(name: str, d: Document) -> Callable[[], Tensor] | None:
    """Returns the forward pass of a whole layer; None for ``matrix``, which has no layer of its own."""
    width, layout = d.heads * d.head_dim, d.layout
    if name == "matrix":
        return None
    if name == "flash":  # whole document as one sentence
        one = np.ones(1, dtype=np.int64)
        layout = DocumentLayout.of(one * d.words, one, one * 0, one * 0)
    if name in ("sentence", "flash"):
        layer: nn.Module = SentenceSelfAttention(width, d.heads)
    elif name == "source2token":
        layer, layout = SENTENCE_ENCODERS[name](width, d.heads), layout.tokens
    else:
        mechanism = CONTEXT_MECHANISMS["sentence-encodings" if name == "encodings" else name]
        selecting = {} if name == "encodings" else {"context_top_t": TOP_T, "context_kernel": d.kernel}
        layer = mechanism(LayerConfig(width, d.heads, d.head_dim), mechanism.Options(**selecting))
    x = torch.randn(d.words, width, requires_grad=True)
    return lambda: layer(x, layout)


def step(name: str, d: Document, whole: bool) -> Callable[[], None] | None:
    """Returns forward and backward of a core or, with ``whole``, of a layer."""
    forward = module(name, d) if whole else core(name, d)
    if forward is None:
        return None

    def both() -> None:
        out = forward()
        out.backward(torch.ones_like(out))

    return both


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.add_argument("--layers", nargs="+", default=list(LAYERS), choices=list(LAYERS))
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--kernel", default="auto", help="kernel of the selecting layers, see --context-kernel")
    parser.add_argument("--max-sentences", type=int, default=SENTENCES[-1], help="size of the largest document")
    parser.add_argument("--seconds", type=float, default=2.0, help="time limit of a point")
    parser.add_argument("--without-memory", action="store_true", help="do not measure memory")


def prepare(args: argparse.Namespace) -> None:
    """Sets one thread and an allocator that keeps memory."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    keep_freed_memory()


def document(sentences: int, words: int, args: argparse.Namespace) -> Document:
    """Returns a document of a size."""
    return Document(sentences, words, args.heads, args.head_dim, args.kernel)


def child(args: argparse.Namespace) -> None:
    """Prints the peak memory of a step."""
    name, sentences, words = args.child[0], *map(int, args.child[1:])
    step(name, document(8, 4, args), False)()  # loads libraries and kernels
    print_peak(step(name, document(sentences, words, args), False))


def seconds(call: Callable[[], None] | None, limit: float) -> float | None:
    """Returns the minimum time of several calls; the first one is a warm-up."""
    if call is None:
        return None
    times = [seconds_of(call) for _ in range(2)]
    while len(times) <= STEPS and sum(times) <= limit:
        times.append(seconds_of(call))
    return min(times[1:])


def exponent(points: list[dict], size: str, value: str) -> float:
    """Returns the slope of log value against log size; nan with fewer than two points."""
    known = [point for point in points if point.get(value)]
    x, y = ([math.log(point[key]) for point in known] for key in (size, value))
    if len(x) < 2:
        return math.nan
    middle = sum(x) / len(x)
    return sum((a - middle) * b for a, b in zip(x, y)) / sum((a - middle) ** 2 for a in x)


def measure_point(name: str, sentences: int, words: int, args: argparse.Namespace) -> dict:
    """Returns the seconds of core and layer, and the peak memory of the core."""
    d = document(sentences, words, args)
    sizes = ["--heads", args.heads, "--head-dim", args.head_dim, "--kernel", args.kernel, "--threads", 1]
    return {
        "sentences": sentences,
        "words": words,
        "core": seconds(step(name, d, False), args.seconds),
        "layer": seconds(step(name, d, True), args.seconds),
        "memory": None if args.without_memory else peak_of(__name__, *sizes, "--child", name, sentences, words),
    }


def measure(args: argparse.Namespace) -> dict:
    """Returns points and exponents in n and in m of every layer."""
    result = {}
    for name in tqdm(args.layers, desc="layers", disable=None):
        limit = min(LAYERS[name].max_sentences, args.max_sentences)
        in_n = [measure_point(name, n, WORDS, args) for n in SENTENCES if n <= limit]
        in_m = [measure_point(name, AT_SENTENCES, m, args) for m in SENTENCE_WORDS]
        exponents = {f"{kind} n": exponent(in_n, "sentences", kind) for kind in ("core", "layer", "memory")}
        exponents |= {f"{kind} m": exponent(in_m, "words", kind) for kind in ("core", "layer", "memory")}
        result[name] = {"in_n": in_n, "in_m": in_m, "exponents": exponents}
    return {"heads": args.heads, "head_dim": args.head_dim, "layers": result}


def size_table(result: dict, series: str, size: str, value: str, unit: float) -> str:
    """Returns a table of a value: one row per layer, one column per size."""
    sizes = sorted({point[size] for one in result.values() for point in one[series]})
    rows = []
    for name, one in result.items():
        known = {point[size]: point[value] for point in one[series]}
        cells = [known.get(s) for s in sizes]
        rows.append([LAYERS[name].label, *("" if cell is None else f"{cell * unit:,.1f}" for cell in cells)])
    return table([f"{'n' if size == 'sentences' else 'm'} =", *(f"{s:,}" for s in sizes)], rows)


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    result = figures["layers"]
    keys = ("core n", "layer n", "memory n", "core m", "layer m", "memory m")
    rows = []
    for name, one in result.items():
        slopes = ["" if math.isnan(one["exponents"][key]) else f"{one['exponents'][key]:.2f}" for key in keys]
        rows.append([LAYERS[name].label, LAYERS[name].cost, LAYERS[name].exponents, *slopes])
    header = ["layer", "cost", "expected n; m", "core, n", "layer, n", "memory, n", "core, m", "layer, m", "memory, m"]
    return [
        f"Forward and backward on one document, {args.heads} heads of width {args.head_dim}, t = {TOP_T}, float32, "
        f"kernel {args.kernel}; minimum of several steps; freed memory is kept. Core: attention and selection from "
        "given queries, keys and values (of all nodes for the tree). Layer: whole module with projections, sentence "
        "encodings and construction of the tree. Memory: peak of the core beyond its inputs, one process per point.",
        f"Exponents in the number of sentences n ({WORDS} words each) and of words per sentence m ({AT_SENTENCES} "
        "sentences). A projection costs n·m, so that the exponent of a layer lies between that of its core and 1.",
        table(header, rows),
        "Core, milliseconds by sentences:",
        size_table(result, "in_n", "sentences", "core", 1e3),
        "Layer, milliseconds by sentences:",
        size_table(result, "in_n", "sentences", "layer", 1e3),
        "Core, peak memory in MB by sentences:",
        size_table(result, "in_n", "sentences", "memory", 1e-6),
        "Core, milliseconds by words per sentence:",
        size_table(result, "in_m", "words", "core", 1e3),
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.complexity"))

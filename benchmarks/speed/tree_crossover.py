"""Document size from which tree search selects faster than flat selection, and the recall of tree search.

    python -m benchmarks.speed.tree_crossover [--words 4096] [--sentences 16 32 ... 4096] [--kernels torch compiled] ...

One document per point; only selection is timed (for trees in key order with ordering the leaves). Recall: share of the
exact top t sentences by cumulative score over their path (in key order: by their own score) that the search finds.
"""

import argparse
import statistics
import sys

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.lib.measuring import by_turns, run_benchmark, seconds_of
from benchmarks.lib.reporting import table
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels import KERNELS, kernel_for
from docnmt_fairseq.context.conditional.selection import TopT
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch, construct, path_sums
from docnmt_fairseq.context.conditional.tree_attention import BEAM, choose_by_keys
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES

TITLE = "Tree selection compared with flat selection"
CORRELATION = 0.9  # of the keys of adjacent sentences
KEYS = {"independent": 0.0, "alike": CORRELATION}
SCORES = ("level", "cumulative")
RANK = 8  # rank of the keys' subspace, low as in trained models
IN_KEY_ORDER = f"key order, beam {BEAM}"
KINDS = {"ratio": "tree", "ratio_by_keys": "keys"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.set_defaults(threads=1)
    parser.add_argument("--sentences", type=int, nargs="+", default=[2**k for k in range(4, 13)])
    parser.add_argument("--words", type=int, default=4096, help="words of a document; at least one per sentence")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--t", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--kernels", nargs="+", default=["torch", "compiled"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)


def document(sentences: int, words: int) -> DocumentLayout:
    """Returns a document whose sentences have about equal length."""
    lengths = np.diff(np.linspace(0, max(words, sentences), sentences + 1).astype(np.int64))
    zeros = np.zeros(sentences, dtype=np.int64)
    return DocumentLayout.of(lengths, np.array([sentences]), np.arange(sentences), zeros)


def random_leaves(sentences: int, heads: int, head_dim: int, correlation: float) -> torch.Tensor:
    """Returns keys [sentences, H, d_k] of variance 1, those of adjacent sentences correlated."""
    leaves = torch.randn(sentences, heads, head_dim)
    for i in range(1, sentences):
        leaves[i] = correlation * leaves[i - 1] + (1 - correlation**2) ** 0.5 * leaves[i]
    return leaves


def node_keys(leaves: torch.Tensor, trees: SentenceTrees) -> torch.Tensor:
    """Returns keys of all nodes [nodes, H, d_k], averages of their children."""
    average = TREE_MERGES["average"](leaves.size(1) * leaves.size(2), leaves.size(1))
    return construct(leaves.flatten(1), trees, average).unflatten(1, leaves.shape[1:])


def times(layout: DocumentLayout, t: int, args: argparse.Namespace) -> dict:
    """Returns median seconds of flat and tree selection by kernel, and the median ratios within rounds."""
    trees, kept = layout.plan(TreesOfBatch()), TopT(t)
    q = torch.randn(layout.tokens.total, args.heads, args.head_dim)
    leaves = random_leaves(layout.tokens.rows, args.heads, args.head_dim, 0)
    keys = node_keys(leaves, trees)
    result = {}
    for name in args.kernels:
        kernel = kernel_for(name, q)
        calls = {
            "flat": lambda kernel=kernel: kernel.choose(q, leaves, layout, kept),
            "tree": lambda kernel=kernel: kernel.choose_in_tree(q, keys, layout, kept),
            "keys": lambda kernel=kernel: choose_by_keys(kernel, q, leaves, layout, kept, BEAM),
        }
        rounds = by_turns({kind: lambda call=call: seconds_of(call) for kind, call in calls.items()}, args.rounds)
        medians = {kind: statistics.median(values) for kind, values in rounds.items()}
        ratios = {
            key: statistics.median(own / flat for own, flat in zip(rounds[kind], rounds["flat"]))
            for key, kind in KINDS.items()
        }
        result[name] = {**medians, **ratios}
    return result


def recall(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Returns the share of exact selections [..., t] that are among those found."""
    return float((found[..., None] == exact[..., None, :]).any(-1).float().mean())


def tree_recall(layout: DocumentLayout, t: int, correlation: float, score: str, args: argparse.Namespace) -> float:
    """Returns the recall of tree search in text order."""
    trees, kept, kernel = layout.plan(TreesOfBatch()), TopT(t), kernel_for(args.kernels[0], torch.zeros(1))
    q = torch.randn(layout.tokens.total, args.heads, args.head_dim)
    keys = node_keys(random_leaves(layout.tokens.rows, args.heads, args.head_dim, correlation), trees)
    sums = path_sums(keys, trees)
    found = kernel.choose_in_tree(q, keys if score == "level" else sums, layout, kept)
    return recall(found, kernel.choose(q, sums[: layout.tokens.rows].contiguous(), layout, kept))


def key_order_recall(layout: DocumentLayout, t: int, rank: int, args: argparse.Namespace) -> float:
    """Returns the recall of tree search in key order, for keys and queries of a subspace."""
    kept, kernel = TopT(t), kernel_for(args.kernels[0], torch.zeros(1))
    basis = torch.randn(args.heads, rank, args.head_dim) / rank**0.5
    keys, q = (
        torch.einsum("nhr,hrd->nhd", torch.randn(rows, args.heads, rank), basis)
        for rows in (layout.tokens.rows, layout.tokens.total)
    )
    return recall(choose_by_keys(kernel, q, keys, layout, kept, BEAM), kernel.choose(q, keys, layout, kept))


def measure(args: argparse.Namespace) -> dict:
    """Returns times and recalls by size and t."""
    torch.manual_seed(args.seed)
    args.kernels = [name for name in args.kernels if KERNELS[name].serves(torch.device("cpu"), torch.float32)]
    points = []
    for sentences in tqdm(args.sentences, desc="sizes", disable=None):
        for t in (t for t in args.t if t < sentences):
            layout, few = document(sentences, args.words), document(sentences, 256)
            recalls = {f"{k}, {s}": tree_recall(few, t, c, s, args) for k, c in KEYS.items() for s in SCORES}
            for rank in (RANK, args.head_dim):
                recalls[f"{IN_KEY_ORDER}, rank {rank}"] = key_order_recall(few, t, rank, args)
            points.append({"sentences": sentences, "t": t, "times": times(layout, t, args), "found": recalls})
    return {"points": points}


def crossover(points: list[dict], kernel: str, t: int, kind: str = "ratio") -> str:
    """Returns the smallest size from which on the tree is faster at every size."""
    smallest = None
    for point in reversed([p for p in points if p["t"] == t]):
        if point["times"][kernel][kind] > 1:
            break
        smallest = point["sentences"]
    return "not reached" if smallest is None else f"{smallest:,} sentences"


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    points, columns = figures["points"], [(kernel, t) for kernel in args.kernels for t in args.t]
    known = {(point["sentences"], point["t"]): point["times"] for point in points}
    header = ["sentences", *(f"{kernel}, t = {t}" for kernel, t in columns)]
    kinds, tables = list(points[0]["found"]), {}
    for kind in KINDS:
        rows = []
        for n in args.sentences:
            cells = [known.get((n, t), {}).get(kernel) for kernel, t in columns]
            rows.append([f"{n:,}", *("" if cell is None else f"{cell[kind]:.2f}" for cell in cells)])
        faster = [f"- {kernel}, t = {t}: {crossover(points, kernel, t, kind)}" for kernel, t in columns]
        tables[kind] = [table(header, rows), "\n".join(["The tree is faster from:", "", *faster])]
    found = [[f"{p['sentences']:,}", p["t"], *(f"{p['found'][kind]:.3f}" for kind in kinds)] for p in points]
    return [
        f"{args.words:,} words (more if there are more sentences), {args.heads} heads of width {args.head_dim}, "
        "float32. Time of tree selection ÷ time of flat selection with the same kernel, medians of "
        f"{args.rounds} rounds by turns.",
        *tables["ratio"],
        f"In key order with beam {BEAM}, including the time to order the leaves:",
        *tables["ratio_by_keys"],
        "Recall of the exact top t sentences (nodes are averages of their children; alike: keys of adjacent sentences "
        f"correlate with {CORRELATION}; level, cumulative: --selection-score; 256 words or more):",
        table(["sentences", "t", *kinds], found),
    ]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.tree_crossover"))

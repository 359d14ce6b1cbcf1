"""From how many sentences on a walk down the tree is faster than flat selection, and how much of the best it finds.

    python -m benchmarks.speed.tree_crossover [--words 4096] [--sentences 16 32 … 4096] [--kernels torch compiled] …

One document a point. Time is that of the selection alone (``choose`` and ``choose_in_tree`` of each kernel; in the
order of keys also putting them in order and choosing t of those found), by turns in one process. Share found: of the
exact t sentences with the largest sum of scores over their path, which one flat product with the path sums of the keys
tells, how many the walk finds; in the order of keys: of those with the largest scores.
Writes benchmarks/results/tree_crossover.md, .json and .png.
"""

import argparse
import statistics

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.lib.machine import RESULTS, clock, command, machine, table, threads, write, write_figures
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.beam import choose_by_keys
from docnmt_fairseq.context.conditional.kernels import KERNELS, kernel_for
from docnmt_fairseq.context.conditional.selection import KeptSentences
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch, construct, path_sums
from docnmt_fairseq.context.conditional.tree_attention import BEAM
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES

NEIGHBOURS = 0.9  # correlation of neighbouring sentences' keys, where they have one
KEYS = {"independent": 0.0, "alike": NEIGHBOURS}
SCORES = ("level", "cumulative")
RANK = 8  # of keys that lie in a subspace, as a trained model's do
BY_KEYS = f"order of keys, beam {BEAM}"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = [2**k for k in range(4, 13)]
    parser.add_argument("--sentences", type=int, nargs="+", default=sizes)
    parser.add_argument("--words", type=int, default=4096, help="of the document; at least its sentences")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--t", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--kernels", nargs="+", default=["torch", "compiled"])
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (default: 7)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch (default: 1)")
    return parser.parse_args()


def document(sentences: int, words: int) -> DocumentLayout:
    """Returns one document of that size, its sentences of about equal length."""
    lengths = np.diff(np.linspace(0, max(words, sentences), sentences + 1).astype(np.int64))
    zeros = np.zeros(sentences, dtype=np.int64)
    return DocumentLayout.of(lengths, np.array([sentences]), np.arange(sentences), zeros)


def random_leaves(sentences: int, heads: int, head_dim: int, correlation: float) -> torch.Tensor:
    """Returns keys [sentences, H, d_k] of variance 1; neighbours in the document have that correlation."""
    leaves = torch.randn(sentences, heads, head_dim)
    for i in range(1, sentences):
        leaves[i] = correlation * leaves[i - 1] + (1 - correlation**2) ** 0.5 * leaves[i]
    return leaves


def node_keys(leaves: torch.Tensor, trees: SentenceTrees) -> torch.Tensor:
    """Returns keys of all nodes, [nodes, H, d_k]: averages of their children's."""
    average = TREE_MERGES["average"](leaves.size(1) * leaves.size(2), leaves.size(1))
    return construct(leaves.flatten(1), trees, average).unflatten(1, leaves.shape[1:])


def times(layout: DocumentLayout, t: int, args: argparse.Namespace) -> dict:
    """Returns the median seconds of flat and tree selection by kernel, and the median ratio of the two in a round."""
    trees, kept = layout.plan(TreesOfBatch()), KeptSentences(t)
    q = torch.randn(layout.tokens.total, args.heads, args.head_dim)
    leaves = random_leaves(layout.tokens.rows, args.heads, args.head_dim, 0)
    keys = node_keys(leaves, trees)
    seconds = {name: {"flat": [], "tree": [], "keys": []} for name in args.kernels}
    for number in range(args.rounds + 1):
        for name in args.kernels:
            kernel = kernel_for(name, q)
            calls = {
                "flat": lambda kernel=kernel: kernel.choose(q, leaves, layout, kept),
                "tree": lambda kernel=kernel: kernel.choose_in_tree(q, keys, layout, kept),
                "keys": lambda kernel=kernel: choose_by_keys(kernel, q, leaves, layout, kept, BEAM),
            }
            for kind, call in calls.items():
                start = clock()
                call()
                if number:  # the first round warms up
                    seconds[name][kind].append(clock() - start)
    result = {}
    for name, one in seconds.items():
        medians = {kind: statistics.median(values) for kind, values in one.items()}
        ratios = {
            kind: statistics.median(other / flat for other, flat in zip(one[kind], one["flat"]))
            for kind in ("tree", "keys")
        }
        result[name] = {**medians, "ratio": ratios["tree"], "ratio_by_keys": ratios["keys"]}
    return result


def share_found(layout: DocumentLayout, t: int, correlation: float, score: str, args: argparse.Namespace) -> float:
    """Returns how much of the exact t best by path sum the walk finds, on average over words and heads."""
    trees, kept = layout.plan(TreesOfBatch()), KeptSentences(t)
    kernel = kernel_for(args.kernels[0], torch.zeros(1))
    q = torch.randn(layout.tokens.total, args.heads, args.head_dim)
    keys = node_keys(random_leaves(layout.tokens.rows, args.heads, args.head_dim, correlation), trees)
    sums = path_sums(keys, trees)
    found = kernel.choose_in_tree(q, keys if score == "level" else sums, layout, kept)
    exact = kernel.choose(q, sums[: layout.tokens.rows].contiguous(), layout, kept)
    return float((found[..., None] == exact[..., None, :]).any(-1).float().mean())


def share_found_by_keys(layout: DocumentLayout, t: int, rank: int, args: argparse.Namespace) -> float:
    """Returns how much of the exact t best a tree in the order of keys finds; keys and queries of that rank."""
    kept, kernel = KeptSentences(t), kernel_for(args.kernels[0], torch.zeros(1))
    basis = torch.randn(args.heads, rank, args.head_dim) / rank**0.5
    keys, q = (
        torch.einsum("nhr,hrd->nhd", torch.randn(rows, args.heads, rank), basis)
        for rows in (layout.tokens.rows, layout.tokens.total)
    )
    found = choose_by_keys(kernel, q, keys, layout, kept, BEAM)
    exact = kernel.choose(q, keys, layout, kept)
    return float((found[..., None] == exact[..., None, :]).any(-1).float().mean())


def measure(args: argparse.Namespace) -> list:
    """Returns a record for every size and t."""
    points = []
    for sentences in tqdm(args.sentences, desc="sizes"):
        for t in args.t:
            if t < sentences:
                layout, few = document(sentences, args.words), document(sentences, 256)
                shares = {f"{k}, {s}": share_found(few, t, c, s, args) for k, c in KEYS.items() for s in SCORES}
                for rank in (RANK, args.head_dim):
                    shares[f"{BY_KEYS}, rank {rank}"] = share_found_by_keys(few, t, rank, args)
                points.append({"sentences": sentences, "t": t, "times": times(layout, t, args), "found": shares})
    return points


def crossover(points: list, kernel: str, t: int, ratio: str = "ratio") -> str:
    """Returns the least size from which on a tree is faster at every size measured."""
    least = None
    for point in reversed([p for p in points if p["t"] == t]):
        if point["times"][kernel][ratio] > 1:
            break
        least = point["sentences"]
    return "not reached" if least is None else f"{least:,} sentences"


def report(args: argparse.Namespace, points: list) -> str:
    columns = [f"{kernel}, t = {t}" for kernel in args.kernels for t in args.t]
    ratios = {(p["sentences"], p["t"]): p["times"] for p in points}
    tables = {}
    for kind in ("ratio", "ratio_by_keys"):
        rows = tables[kind] = []
        for n in args.sentences:
            cells = [(ratios.get((n, t)) or {}).get(kernel) for kernel in args.kernels for t in args.t]
            rows.append([f"{n:,}", *("" if cell is None else f"{cell[kind]:.2f}" for cell in cells)])
    kinds = list(points[0]["found"])
    found = [[f"{p['sentences']:,}", p["t"], *(f"{p['found'][kind]:.3f}" for kind in kinds)] for p in points]
    faster = {
        kind: [f"- {kernel}, t = {t}: {crossover(points, kernel, t, kind)}" for kernel in args.kernels for t in args.t]
        for kind in tables
    }
    return "\n\n".join(
        [
            "# Tree selection beside flat selection",
            f"`{command()}`  \n{machine()}; {threads()}",
            f"{args.words:,} words (more where there are more sentences), {args.heads} heads of {args.head_dim}, "
            f"float32. Time of tree selection ÷ time of flat selection with the same kernel, medians of {args.rounds} "
            "rounds by turns; below 1 the tree is faster. Cutting by level or by cumulative score costs the same.",
            table(["sentences", *columns], tables["ratio"]),
            "The tree is faster from:\n" + "\n".join(faster["ratio"]),
            f"The same in the order of keys, beam {BEAM}, putting them in order included:",
            table(["sentences", *columns], tables["ratio_by_keys"]),
            "Faster from:\n" + "\n".join(faster["ratio_by_keys"]),
            "Share of the exact t best sentences by path sum that the walk finds (nodes are averages of their "
            f"children; independent: keys of sentences are; alike: neighbours' keys correlate by {NEIGHBOURS}; level, "
            "cumulative: what a height is cut by; 256 words, or as many as sentences); in the order of keys of the "
            "exact t best by their own scores, queries and keys drawn from a subspace of that rank for each head:",
            table(["sentences", "t", *kinds], found),
            "![Ratios and shares](tree_crossover.png)",
        ]
    )


def plot(args: argparse.Namespace, points: list) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

    figure = Figure(figsize=(10, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    speed, found = figure.subplots(1, 2)
    lines = [(kernel, t) for kernel in args.kernels for t in args.t]
    for number, (kernel, t) in enumerate(lines):
        some = [p for p in points if p["t"] == t]
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        ratio = [p["times"][kernel]["ratio"] for p in some]
        speed.plot([p["sentences"] for p in some], ratio, label=f"{kernel}, t = {t}", **style)
    speed.axhline(1, color="#555555", linestyle="--", linewidth=1.2)
    speed.set(xscale="log", yscale="log", xlabel="sentences", ylabel="tree ÷ flat", title="Time of selection")
    middle = args.t[len(args.t) // 2]
    for number, kind in enumerate(points[0]["found"]):
        some = [p for p in points if p["t"] == middle]
        style = {"color": COLOURS[number], "marker": MARKERS[number]}
        found.plot([p["sentences"] for p in some], [p["found"][kind] for p in some], label=kind, **style)
    found.set(xscale="log", ylim=(0, 1.03), xlabel="sentences", title=f"Share of the exact best found, t = {middle}")
    for panel in (speed, found):
        panel.grid(alpha=0.25)
        panel.legend(fontsize=8)
    figure.savefig(RESULTS / "tree_crossover.png")


def main() -> None:
    args = options()
    torch.set_num_threads(args.threads)
    args.kernels = [name for name in args.kernels if KERNELS[name]().serves(torch.device("cpu"), torch.float32)]
    torch.manual_seed(args.seed)
    points = measure(args)
    write("tree_crossover.md", report(args, points))
    plot(args, points)
    facts = {"command": command(), "machine": machine(), "threads": args.threads, "points": points}
    write_figures("tree_crossover.json", facts)


if __name__ == "__main__":
    main()

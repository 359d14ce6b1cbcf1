"""The table and the picture of ``complexity.py``."""

import argparse
import math
from pathlib import Path

from benchmarks.lib.machine import command, machine, table, threads
from benchmarks.speed.layers import LAYERS, TOP_T

TARGETS = {"conditional": ("core n ≤ 512", 1.3), "tree": ("core n", 1.15)}


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def exponent_table(result: dict) -> str:
    header = ["layer", "cost", "expected n; m", "core, n", "layer, n", "memory, n", "core, m", "layer, m", "memory, m"]
    rows = []
    for name, one in result.items():
        layer, e = LAYERS[name], one["exponents"]
        keys = ("core n", "layer n", "memory n", "core m", "layer m", "memory m")
        rows.append([layer.label, layer.cost, layer.exponents, *(number(e[key]) for key in keys)])
    return table(header, rows)


def size_table(result: dict, series: str, size: str, value: str, unit: float) -> str:
    """Returns a table of one value: a row a layer, a column a size."""
    sizes = sorted({point[size] for one in result.values() for point in one[series]})
    rows = []
    for name, one in result.items():
        known = {point[size]: point[value] for point in one[series]}
        cells = [known.get(s) for s in sizes]
        rows.append([LAYERS[name].label, *("" if cell is None else f"{cell * unit:,.1f}" for cell in cells)])
    return table([f"{'n' if size == 'sentences' else 'm'} =", *(f"{s:,}" for s in sizes)], rows)


def targets(result: dict) -> str:
    lines = []
    for name, (key, most) in TARGETS.items():
        if name in result:
            value = result[name]["exponents"][key]
            reached = max(point["sentences"] for point in result[name]["in_n"])
            span = f"up to {min(reached, 512) if '512' in key else reached:,} sentences"
            lines.append(f"- {name} ≤ {most} {span}: {value:.2f}, {'met' if value <= most else 'missed'}")
    return "\n".join(lines)


def report(args: argparse.Namespace, result: dict) -> str:
    """Returns the whole text."""
    words = next(iter(result.values()))["in_n"][0]["words"]
    sentences = next(iter(result.values()))["in_m"][0]["sentences"]
    return "\n\n".join(
        [
            "# Cost of the layer types against sentences and words",
            f"`{command()}`  \n{machine()}; {threads()}; kernel {args.kernel}",
            f"Forward and backward on one document, {args.heads} heads of {args.head_dim}, t = {TOP_T}, float32; "
            "the least time of some steps; the allocator keeps freed memory. Core: attention and selection alone, from "
            "given queries, keys and values "
            "(of all nodes, for the tree). Layer: the whole module, with its projections, and where it has them the "
            "sentence encodings and the construction of the tree. Memory: peak of the core's step beyond its inputs, "
            "each point in its own process.",
            f"Exponents of time and memory in the number n of sentences ({words} words each), and in the number m of "
            f"words a sentence ({sentences} sentences): slopes of straight lines through the logarithms of all sizes "
            "below. A projection costs n·m, so whole layers lie between their core and 1.",
            exponent_table(result),
            "Targets, exponents of the core in n:\n" + targets(result),
            "Core, milliseconds:",
            size_table(result, "in_n", "sentences", "core", 1e3),
            "Layer, milliseconds:",
            size_table(result, "in_n", "sentences", "layer", 1e3),
            "Core, peak memory, MB:",
            size_table(result, "in_n", "sentences", "memory", 1e-6),
            "Core, milliseconds:",
            size_table(result, "in_m", "words", "core", 1e3),
            "![Time and memory](complexity.png)",
        ]
    )


def plot(result: dict, path: Path) -> None:
    """Writes time against n, time against m, and memory against n, all logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

    figure = Figure(figsize=(13, 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    series = [("in_n", "sentences", "core", "seconds of a step"), ("in_m", "words", "core", "seconds of a step")]
    if any(point["memory"] for one in result.values() for point in one["in_n"]):  # it may not have been measured
        series.append(("in_n", "sentences", "memory", "peak memory, bytes"))
    panels = figure.subplots(1, len(series))
    for panel, (which, size, value, title) in zip(panels, series):
        for place, (name, one) in enumerate(result.items()):
            points = [(point[size], point[value]) for point in one[which] if point[value]]
            style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)], "markersize": 4}
            panel.plot(*zip(*points), label=LAYERS[name].label, **style)
        label = "sentences n" if size == "sentences" else "words a sentence m"
        panel.set(xscale="log", yscale="log", xlabel=label, title=title)
        panel.grid(alpha=0.25, which="both")
        panel.xaxis.set_minor_formatter("")
    entries = panels[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path)

"""The tables and the picture of ``conditional_attention.py``."""

import argparse
from pathlib import Path
from typing import Dict, List

from benchmarks.lib.machine import table, threads

PASSES = ("fwd", "fwd + bwd")
TIME_TARGETS = {  # kernel, sentences: most of flash attention's time, t = 4
    ("compiled", 8): (1.0, 1.0),
    ("compiled", 128): (0.10, 0.08),
    ("compiled", 256): (0.07, 0.05),
    ("torch", 128): (0.55, 0.32),
    ("torch", 256): (0.28, 0.16),
}
MEMORY_TARGETS = {"compiled": 0.9, "torch": 1.5}  # of flash attention's, from 128 sentences on
QUERY_BYTES = 8 * 64 * 4  # of a word's queries of selection, whose gradient flash attention has no counterpart to


def _verdict(label: str, value: float, most: float, digits: int = 3) -> str:
    return f"- {label} ≤ {most}: {value:.{digits}f}, {'met' if value <= most else 'missed'}"


def _size(sentences: int) -> str:
    return f"{25 * sentences:,} ({sentences})"


def _targets(facts: dict) -> List[str]:
    ratios = {p["sentences"]: p["ratios"] for p in facts["points"] if p["t"] == 4}
    lines = []
    for (name, sentences), limits in TIME_TARGETS.items():
        for part, most in zip(PASSES, limits):
            if name in ratios.get(sentences, {}):
                label = f"time, {name}, {25 * sentences:,} words, {part}"
                lines.append(_verdict(label, ratios[sentences][name][part], most))
    for point in facts["memory"]:
        for name, most in MEMORY_TARGETS.items():
            if name in point["memory"] and point["sentences"] >= 128:
                part, words = PASSES[1], 25 * point["sentences"]
                of_queries = words * QUERY_BYTES
                ratio = (point["memory"][name][part] - of_queries) / point["memory"]["flash"][part]
                lines.append(_verdict(f"memory without the gradient of q_s, {name}, {words:,} words", ratio, most, 2))
    dense = facts["errors"]["dense"]["float32"]
    for name, error in facts["errors"].items():
        if name != "dense":
            lines.append(_verdict(f"error, {name}, float32 ÷ the dense kernel's", error["float32"] / dense, 2, 2))
            met = "met" if error["float64"] <= 1e-12 else "missed"
            lines.append(f"- error, {name}, float64 ≤ 1e-12: {error['float64']:.1e}, {met}")
    return lines


def report(facts: dict, args: argparse.Namespace) -> str:
    """Returns the whole text."""
    header = ["words (sentences)", "t", *[f"{name}, {part}" for name in args.kernels for part in PASSES]]
    rows = [
        [_size(p["sentences"]), p["t"], *(f"{p['ratios'][n][part]:.3f}" for n in args.kernels for part in PASSES)]
        for p in facts["points"]
    ]
    ways = ["flash", *args.kernels]
    memory = [
        [_size(p["sentences"]), *(f"{p['memory'][way][part] / 1e6:,.1f}" for way in ways for part in PASSES)]
        for p in facts["memory"]
    ]
    errors: Dict[str, Dict[str, float]] = facts["errors"]
    dtypes = list(errors["dense"])
    return "\n\n".join(
        [
            "# Conditional attention beside flash attention over the whole document",
            f"`{facts['command']}`  \n{facts['machine']}; {threads()}",
            "Time ÷ time of PyTorch's flash attention over the whole document, medians of steps by turns; selection "
            "included, projections not. 8 heads of 64, float32, ragged sentences of 25 words on average.",
            table(header, rows),
            f"Peak memory of a step beyond its inputs, MB, t = {facts['memory'][0]['t']}, each in its own process. "
            "Conditional attention has one gradient more to return, that of its queries of selection (6.6 MB of 3,200 "
            "words).",
            table(["words (sentences)", *[f"{way}, {part}" for way in ways for part in PASSES]], memory),
            "Largest error of outputs and gradients against the dense kernel in float64, relative to the largest "
            "magnitude, 800 words (32 sentences):",
            table(["kernel", *dtypes], [[name, *(f"{e[d]:.1e}" for d in dtypes)] for name, e in errors.items()]),
            "Targets (t = 4):\n" + "\n".join(_targets(facts)),
            "![Time and memory](conditional_attention.png)",
        ]
    )


def plot(facts: dict, args: argparse.Namespace, path: Path) -> None:
    """Writes time against words by t, and memory against words, both as ratios to flash attention."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

    figure = Figure(figsize=(10, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    time, memory = figure.subplots(1, 2)
    lines = [(name, t) for name in args.kernels for t in args.t]
    for number, (name, t) in enumerate(lines):
        some = [p for p in facts["points"] if p["t"] == t]
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        values = [p["ratios"][name]["fwd + bwd"] for p in some]
        time.plot([25 * p["sentences"] for p in some], values, label=f"{name}, t = {t}", **style)
    time.set(title="Time, forward and backward")
    for number, name in enumerate(args.kernels):
        style = {"color": COLOURS[number], "marker": MARKERS[number]}
        values = [p["memory"][name]["fwd + bwd"] / p["memory"]["flash"]["fwd + bwd"] for p in facts["memory"]]
        memory.plot([25 * p["sentences"] for p in facts["memory"]], values, label=name, **style)
    memory.set(title=f"Peak memory, forward and backward, t = {facts['memory'][0]['t']}")
    words = {
        time: [25 * p["sentences"] for p in facts["points"]],
        memory: [25 * p["sentences"] for p in facts["memory"]],
    }
    for panel in (time, memory):
        panel.axhline(1, color="#555555", linestyle="--", linewidth=1.2)
        panel.set(xscale="log", yscale="log", xlabel="words of the document", ylabel="÷ flash attention")
        panel.set_xticks(sorted({*words[panel]}), [f"{number:,}" for number in sorted({*words[panel]})])
        panel.set_xticks([], minor=True)
        panel.grid(alpha=0.25, which="both")
        panel.legend(fontsize=8)
    figure.savefig(path)

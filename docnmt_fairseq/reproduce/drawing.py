"""Curves of published figures as PNG."""

from pathlib import Path
from typing import Any, Mapping, Sequence, Tuple

from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

Curve = Sequence[Tuple[float, float]]


def draw_curves(path: Path, curves: Mapping[str, Curve], x: str, y: str) -> Path:
    """Draws curves with their names, and returns the file; ``x`` and ``y`` name the axes."""
    from matplotlib.figure import Figure  # not pyplot, whose global state selects a window system

    figure = Figure(figsize=(7.0, 4.2), dpi=150, layout="constrained")
    panel = figure.subplots()
    for number, points in enumerate(curves.values()):
        style: Any = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        panel.plot(*zip(*points), markersize=3, markevery=0.1, linewidth=1.4, **style)
    panel.set(xlabel=x, ylabel=y)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    legend = figure.legend(panel.get_lines(), map(str, range(len(curves))), loc="outside right upper", fontsize="small")
    for text, name in zip(legend.get_texts(), curves):
        text.set(text=name, parse_math=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path

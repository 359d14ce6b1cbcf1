"""Training curves from what ``fairseq-train`` logged, whatever its ``--log-format`` was."""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import parse_json
from docnmt_fairseq.report.charts import Axis, line_chart
from docnmt_fairseq.report.elements import table

_LINE = re.compile(r"""\| ([\w.-]+) \| (\{".*\}|epoch \d+.*)$""")  # as JSON or as text
_FIGURE = re.compile(r"\b(\w+)[= ](-?[\d.]+(?:e[-+]?\d+)?)\b")
QUANTITIES = ("loss", "nll_loss", "bleu", "lr", "gnorm", "kept_sentences")
NAMES = {"nll_loss": "nll loss", "lr": "learning rate", "gnorm": "gradient norm", "kept_sentences": "sentences kept"}


@dataclass
class Curves:
    """By quantity, by what it was measured on (``training``, or a subset for validation): (update, value)."""

    curves: Dict[str, Dict[str, List[Tuple[float, float]]]] = field(default_factory=dict)

    def add(self, source: str, figures: Dict[str, float]) -> None:
        """Adds what a line says, if it says at which update."""
        updates = figures.get("num_updates")
        if updates is None:
            return
        for name in QUANTITIES:
            if name in figures:
                self.curves.setdefault(name, {}).setdefault(source, []).append((updates, figures[name]))


def read_log(path: Path) -> Curves:
    """Reads the curves of a log. A training that was resumed repeats updates: the later ones count.

    Raises:
        InputError: no such file, or nothing of a training in it.
    """
    curves, epochs = Curves(), Curves()
    for line in read_lines(path):
        found = _LINE.search(line)
        if found is None:
            continue
        name, figures = found[1], _figures(found[2])
        prefix = "train_" if name == "train" else f"{name}_"
        plain = {key.removeprefix(prefix): value for key, value in figures.items()}
        if name == "train":
            epochs.add("training", plain)  # an epoch's mean, for logs without intervals
        else:
            curves.add("training" if name == "train_inner" else name, plain)
    for quantity, of_epochs in epochs.curves.items():
        curves.curves.setdefault(quantity, {}).setdefault("training", of_epochs["training"])
    if not curves.curves:
        raise InputError(f"--log {path}: holds no training; give what fairseq-train printed")
    return Curves(
        {
            quantity: {source: sorted(dict(points).items()) for source, points in of.items()}
            for quantity, of in curves.curves.items()
        }
    )


def _figures(text: str) -> Dict[str, float]:
    try:
        pairs = parse_json(text).items() if text.startswith("{") else _FIGURE.findall(text)
    except ValueError:
        return {}  # a line that two processes wrote at once
    figures = {}
    for name, value in pairs:
        try:
            figure = float(value)
        except (TypeError, ValueError, OverflowError):
            continue  # not a figure
        if math.isfinite(figure):  # a training that diverged has none to draw
            figures[name] = figure
    return figures


def section(curves: Curves) -> str:
    """The charts, with the figures of the validation as a table."""
    charts, rows = [], []
    for quantity in QUANTITIES:
        series = curves.curves.get(quantity)
        if not series:
            continue
        name = NAMES.get(quantity, quantity)
        points = [point for of_source in series.values() for point in of_source]
        x, y = (Axis.around([point[i] for point in points], label) for i, label in enumerate(("update", name)))
        charts.append(line_chart(name, series, x, y))
        for source, of_source in series.items():
            (first, start), (last, end) = of_source[0], of_source[-1]
            low = min(value for _, value in of_source)
            rows.append([name, source, f"{start:g} ({first:,.0f})", f"{end:g} ({last:,.0f})", f"{low:g}"])
    figures = table(["", "on", "first (update)", "last (update)", "lowest"], rows, "Figures of the curves")
    return f'<div class="charts">{"".join(charts)}</div>{figures}'

"""Report sections of result files: scores of ``docnmt score``, and training curves of ``fairseq-train``."""

import json
import math
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.report.html import Axis, line_chart, table

_LINE = re.compile(r"""\| ([\w.-]+) \| (\{".*\}|epoch \d+.*)$""")  # JSON or text, by --log-format
_FIGURE = re.compile(r"\b(\w+)[= ](-?[\d.]+(?:e[-+]?\d+)?)\b")
QUANTITIES = {
    "loss": "loss",
    "nll_loss": "nll loss",
    "bleu": "bleu",
    "lr": "learning rate",
    "gnorm": "gradient norm",
    "kept_sentences": "sentences kept",
}

# By quantity and data ("training" or a subset): (update, value).
Curves = Dict[str, Dict[str, List[Tuple[float, float]]]]


def scores_section(path: Path) -> str:
    """Tables and charts of the JSON of ``docnmt score``, with or without ``--synth``."""
    results = json.loads(path.read_text(encoding="utf-8"))
    return _synth(results) if "systems" in results else _scores(results)


def _synth(results: Dict[str, Any]) -> str:
    systems = {name: system["phenomena"] for name, system in results["systems"].items()}
    ceiling, kinds = results["ceiling"], list(next(iter(systems.values()))["by_kind"])
    rows = []
    for name, figures in systems.items():
        scores = [f"{results['systems'][name]['scores'][metric]:.1f}" for metric in ("bleu", "chrf")]
        shares = [_share(figures["by_kind"][kind]) for kind in kinds]
        rows.append([name, *scores, *shares, _share(figures["overall"])])
    of_kinds = [_share(ceiling["kinds"][kind]) for kind in kinds]
    rows.append(["ceiling without context", "", "", *of_kinds, _share(ceiling["overall"])])
    header = ["system", "BLEU", "chrF", *kinds, "overall"]
    accuracy = table(header, rows, "Accuracy on context-dependent words, with 95 % intervals")
    charts, distances = [], []
    for kind in kinds:
        by_distance = {name: figures["by_kind_and_distance"][kind] for name, figures in systems.items()}
        series = {
            name: [(int(distance), 100 * figure["accuracy"]) for distance, figure in found.items()]
            for name, found in by_distance.items()
        }
        places = [int(distance) for distance in next(iter(by_distance.values()))]
        axes = Axis.around(places, "distance (sentences)"), Axis(0, 103, "accuracy (%)")
        charts.append(line_chart(kind, series, *axes))
        for distance in map(str, places):
            distances.append([kind, distance, *(_share(found[distance]) for found in by_distance.values())])
    details = table(["kind", "distance", *systems], distances, "Accuracy by kind and distance")
    return (
        f'{accuracy}<div class="charts">{"".join(charts)}</div>'
        f"<details><summary>Accuracy by kind and distance as a table</summary>{details}</details>"
    )


def _share(figure: Dict[str, Any]) -> str:
    share = f"{100 * figure['accuracy']:.1f} %"
    if "interval" not in figure:  # of a ceiling
        return share
    low, high = figure["interval"]
    return f"{share} ({100 * low:.0f}–{100 * high:.0f}; {figure['cases']})"


def _scores(results: Dict[str, Any]) -> str:
    rows = [
        [
            f"{column['metric']}, {column['level']}",
            *(f"{score:.2f}" for score in column["systems"].values()),
            column["signature"],
        ]
        for column in results["scores"]
    ]
    return table(["metric", *results["scores"][0]["systems"], "signature"], rows, "Scores")


def read_curves(path: Path, quantities: Iterable[str] = QUANTITIES) -> Curves:
    """Reads the curves of a training log; after resuming, later values replace those of the same update."""
    curves: Curves = {}
    epochs: Curves = {}
    for line in read_lines(path):
        found = _LINE.search(line)
        if found is None:
            continue
        name, figures = found[1], _figures(found[2])
        prefix = "train_" if name == "train" else f"{name}_"
        figures = {key.removeprefix(prefix): value for key, value in figures.items()}
        update = figures.get("num_updates")
        data = "training" if name in ("train", "train_inner") else name
        for quantity in quantities:
            if update is not None and quantity in figures:
                target = epochs if name == "train" else curves
                target.setdefault(quantity, {}).setdefault(data, []).append((update, figures[quantity]))
    for quantity, of_epochs in epochs.items():  # means of epochs, for logs without intervals
        curves.setdefault(quantity, {}).setdefault("training", of_epochs["training"])
    return {
        quantity: {data: sorted(dict(points).items()) for data, points in of_quantity.items()}
        for quantity, of_quantity in curves.items()
    }


def _figures(text: str) -> Dict[str, float]:
    """Finite numbers of a line."""
    try:
        pairs = json.loads(text).items() if text.startswith("{") else _FIGURE.findall(text)
    except ValueError:
        return {}  # interleaved output of two processes
    figures = {}
    for name, value in pairs:
        try:
            figure = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(figure):  # not after divergence
            figures[name] = figure
    return figures


def curves_section(curves: Curves) -> str:
    """Charts of the curves, and a table of their first, last and lowest values."""
    charts, rows = [], []
    for quantity, name in QUANTITIES.items():
        series = curves.get(quantity)
        if not series:
            continue
        points = [point for of_data in series.values() for point in of_data]
        x, y = (Axis.around([point[i] for point in points], label) for i, label in enumerate(("update", name)))
        charts.append(line_chart(name, series, x, y))
        for data, of_data in series.items():
            (first, start), (last, end) = of_data[0], of_data[-1]
            low = min(value for _, value in of_data)
            rows.append([name, data, f"{start:g} ({first:,.0f})", f"{end:g} ({last:,.0f})", f"{low:g}"])
    figures = table(["", "data", "first (update)", "last (update)", "lowest"], rows, "Values of the curves")
    return f'<div class="charts">{"".join(charts)}</div>{figures}'

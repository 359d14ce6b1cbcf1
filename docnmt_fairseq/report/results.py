"""Scores from the JSON of ``docnmt score-synth`` and ``docnmt score``."""

from pathlib import Path
from typing import Any, Dict, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import parse_json
from docnmt_fairseq.report.charts import Axis, line_chart
from docnmt_fairseq.report.elements import table


def section(path: Path) -> str:
    """Reads what a file of results says, as tables and charts.

    Raises:
        InputError: no such file, or not the JSON of one of the two commands.
    """
    try:
        results = parse_json(path.read_text(encoding="utf-8"))
        if isinstance(results.get("systems"), dict):
            return _synth(results)
        if isinstance(results.get("scores"), list):
            return _scores(results)
    except OSError as error:
        raise InputError(f"--results {path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"--results {path}: not the JSON of docnmt score-synth or docnmt score ({error})") from error
    raise InputError(f"--results {path}: not the JSON of docnmt score-synth or docnmt score")


def _synth(results: Dict[str, Any]) -> str:
    systems = {name: system["phenomena"] for name, system in results["systems"].items()}
    kinds = sorted({kind for figures in systems.values() for kind in figures["by_kind"]})
    rows = []
    for name, figures in systems.items():
        scores = results["systems"][name].get("scores", {})
        known = [f"{scores[metric]:.1f}" if metric in scores else "" for metric in ("bleu", "chrf")]
        shares = [_share(figures["by_kind"].get(kind)) for kind in kinds]
        rows.append([name, *known, *shares, _share(figures["overall"])])
    ceiling = results.get("ceiling")
    if ceiling:
        of_kinds = [_share(ceiling["kinds"].get(kind)) for kind in kinds]
        rows.append(["best without context", "", "", *of_kinds, _share(ceiling["overall"])])
    header = ["system", "BLEU", "chrF", *kinds, "overall"]
    parts = [table(header, rows, "Words that only context decides, translated right (with 95 % intervals)")]
    charts, distances = [], []
    for kind in kinds:
        series = {
            name: [(int(distance), 100 * figure["accuracy"]) for distance, figure in found.items()]
            for name, figures in systems.items()
            if (found := figures.get("by_kind_and_distance", {}).get(kind))
        }
        if not series:
            continue
        places = [x for points in series.values() for x, _ in points]
        charts.append(line_chart(kind, series, Axis.around(places, "sentences back"), Axis(0, 103, "% right")))
        distances += _by_distance(kind, systems)
    parts.append(f'<div class="charts">{"".join(charts)}</div>')
    if distances:
        figures = table(["kind", "sentences back", *systems], distances, "Accuracy by kind and distance")
        parts.append(f"<details><summary>Accuracy by kind and distance as a table</summary>{figures}</details>")
    return "".join(parts)


def _by_distance(kind: str, systems: Dict[str, Any]) -> List[List[str]]:
    found = {name: figures["by_kind_and_distance"].get(kind, {}) for name, figures in systems.items()}
    distances = sorted({int(distance) for figures in found.values() for distance in figures})
    return [
        [kind, str(distance), *(_share(figures.get(str(distance))) for figures in found.values())]
        for distance in distances
    ]


def _share(figure: Any) -> str:
    if figure is None:
        return "–"
    share = f"{100 * figure['accuracy']:.1f} %"
    if "interval" not in figure:
        return share
    low, high = figure["interval"]
    return f"{share} ({100 * low:.0f}–{100 * high:.0f}; {figure['cases']})"


def _scores(results: Dict[str, Any]) -> str:
    columns = results["scores"]
    systems = list(dict.fromkeys(name for column in columns for name in column["systems"]))
    rows = [
        [
            f"{column['metric']}, {column['level']}",
            *(f"{column['systems'][name]:.2f}" if name in column["systems"] else "–" for name in systems),
            str(column["signature"]),
        ]
        for column in columns
    ]
    return table(["metric", *systems, "signature"], rows, "Scores")

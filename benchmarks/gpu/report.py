"""The report of all stages: figures by point, and each prediction beside what was measured."""

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from benchmarks.gpu.stage import STAGES, Figures, good
from benchmarks.lib.machine import table
from benchmarks.lib.store import Store

PREDICTIONS = Path(__file__).parent / "predictions.json"
RATIOS: Dict[str, Tuple[str, Tuple[str, ...]]] = {  # what a stage's points are held against, and which of their figures
    "attention": ("flash", ("forward ms", "both ms")),
    "training": ("stock", ("tokens/s",)),
    "translating": ("stock", ("tokens/s",)),
}
MOST_SAID = 300  # characters


def derived(stage: str, runs: Dict[str, Figures]) -> Dict[str, Figures]:
    """The points of a stage with their ratios to the baseline's of the same size, above 1 where they are faster."""
    if stage not in RATIOS:
        return runs
    baseline, figures = RATIOS[stage]
    found = {}
    for point, run in runs.items():
        base = runs.get("/".join([*point.split("/")[:-1], baseline]), {})
        more = {
            f"{name} against {baseline}": base[name] / run[name] if name.endswith("ms") else run[name] / base[name]
            for name in figures
            if name in run and name in base
        }
        found[point] = {**run, **more}
    return found


def shown(value: Any) -> str:
    """A figure as the report has it."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def listed(value: Any) -> str:
    """What is no number, in a line: figures by name with semicolons between; of what failed the end of what it said."""
    if isinstance(value, dict):
        return "; ".join(f"`{name}` {listed(shown(figure))}" for name, figure in value.items())
    return " ".join(str(value).split())[-MOST_SAID:]


def stage_table(runs: Dict[str, Figures]) -> str:
    """Figures by point; what is not a number is listed below."""
    numbers = {name: {k: v for k, v in run.items() if isinstance(v, (int, float))} for name, run in runs.items()}
    columns = list(dict.fromkeys(column for run in numbers.values() for column in run))
    rows = [
        [name, *(shown(run[column]) if column in run else "" for column in columns)] for name, run in numbers.items()
    ]
    more = [
        f"- {name}: {key}: {listed(value)}"
        for name, run in runs.items()
        for key, value in run.items()
        if value and not isinstance(value, (int, float))
    ]
    return "\n\n".join([table(["point", *columns], rows), *(["\n".join(more)] if more else [])])


def compared(predictions: Dict[str, Dict[str, Dict[str, float]]], found: Dict[str, Dict[str, Figures]]) -> str:
    """Every prediction, the figure, and their ratio; what was not measured is said."""
    rows: List[list] = []
    for stage, points in predictions.items():
        for point, figures in points.items():
            for name, value in figures.items():
                figure = found.get(stage, {}).get(point, {}).get(name)
                ratio = "" if figure is None or not value else f"{figure / value:.2f}"
                rows.append(
                    [
                        f"{stage}: {point}: {name}",
                        shown(value),
                        "not measured" if figure is None else shown(figure),
                        ratio,
                    ]
                )
    return table(["figure", "predicted", "measured", "measured ÷ predicted"], rows)


def write_report(output: Path, predictions: Path = PREDICTIONS) -> str:
    """Writes ``gpu.md`` from the JSON files of the stages, and returns it."""
    parts, found = ["# On a GPU"], {}
    for name in STAGES.names():
        path = output / f"{name}.json"
        if not path.exists():
            continue
        store = Store(path)
        found[name] = derived(name, good(store.runs))
        facts = store.facts
        toy = " **Toy sizes: the figures mean nothing.**" if facts.get("dry") else ""
        about = f"`{facts.get('command')}`  \n{facts.get('machine')}; {facts.get('device')}.{toy}"
        failed = [f"- {point}: {run['error']}" for point, run in store.runs.items() if "error" in run]
        trouble = ["Failed:\n\n" + "\n".join(failed)] if failed else []
        parts += [f"## {name}", about, *([stage_table(found[name])] if found[name] else []), *trouble]
    parts[1:1] = ["## Predictions", compared(json.loads(predictions.read_text(encoding="utf-8")), found)]
    text = "\n\n".join(parts)
    (output / "gpu.md").write_text(text + "\n", encoding="utf-8")
    return text

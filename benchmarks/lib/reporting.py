"""Reports of benchmarks: environment, Markdown tables, stored results, output files."""

import datetime
import json
import logging
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from docnmt_fairseq.cli import only_warnings
from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
LOCAL_OPTIONS = ("--work", "--results", "--initial-work", "--demo", "--folder")  # not part of the command in a report
FINDINGS, COMMANDS = "## Findings", "## Commands"  # the text between the two is written by hand and kept


def machine() -> str:
    """Returns processor, cores, library versions and date, in one line."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}, NumPy {numpy.__version__}"
    return f"{names[0] if names else platform.machine()}, {cores} cores; {versions}; {datetime.date.today()}"


def command(raw: Path | None = None) -> str:
    """Returns the command line of this process, without folders of this machine.

    Args:
        raw: folder with text, shown as ``path/to/NAME``.
    """
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    words, given = [], iter(sys.argv[1:])
    for word in given:
        if word in LOCAL_OPTIONS:
            next(given)
        elif raw is not None and word == str(raw):
            words.append(f"path/to/{raw.name}")
        else:
            words.append(os.path.relpath(word) if os.path.isabs(word) else word)
    start = ["python", os.path.relpath(sys.argv[0])] if spec is None else ["python", "-m", spec.name]
    return shlex.join([*start, *words])


def table(header: Sequence, rows: Sequence[Sequence], numbers: bool = True) -> str:
    """Returns a Markdown table; all columns but the first are right-aligned if they hold numbers."""
    lines = [header, ["---", *["---:" if numbers else "---"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def side_by_side(values: Sequence[float | None], digits: int = 1, factor: float = 1.0) -> str:
    """Returns the values of several seeds, separated by slashes."""
    return " / ".join("–" if value is None else f"{factor * value:.{digits}f}" for value in values)


def new_figure(rows: int = 1, columns: int = 1, size: tuple[float, float] = (10, 4.2), **options: Any) -> tuple:
    """Returns a figure that needs no display, and its axes [rows, columns]."""
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def style(number: int) -> dict[str, Any]:
    """Returns colour, marker and dashes of line number ``number``."""
    dashes = ("-", "--", ":")[number // len(COLOURS) % 3]
    marker = MARKERS[number % len(MARKERS)]
    return {"color": COLOURS[number % len(COLOURS)], "marker": marker, "markersize": 4, "linestyle": dashes}


def finish(panel: Any, **settings: Any) -> None:
    """Sets titles and labels of axes, with a grid and a legend if there is anything to explain."""
    panel.set(**settings)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    if panel.get_legend_handles_labels()[1]:
        panel.legend(fontsize="small", frameon=False)


def write(name: str, paragraphs: Sequence[str], results: Path = RESULTS) -> None:
    """Prints a Markdown report and writes it; keeps hand-written findings of an existing report.

    Args:
        name: file name, without suffix.
        paragraphs: text and tables; findings are inserted before ``COMMANDS`` if the report has that section.
        results: output folder.
    """
    results.mkdir(parents=True, exist_ok=True)
    path, parts = results / f"{name}.md", [part for part in paragraphs if part]
    existing = path.read_text(encoding="utf-8") if path.exists() else ""
    findings = existing.partition(FINDINGS)[2].partition(COMMANDS)[0].strip()
    if findings and COMMANDS in parts:
        parts[parts.index(COMMANDS) : parts.index(COMMANDS)] = [FINDINGS, findings]
    text = "\n\n".join(parts).rstrip("\n") + "\n"
    print(text)
    path.write_text(text, encoding="utf-8")


def write_json(name: str, figures: dict, results: Path = RESULTS) -> None:
    """Writes the figures that a report is made from."""
    results.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    (results / f"{name}.json").write_text(text + "\n", encoding="utf-8")


class Store:
    """Results of finished runs in a JSON file, extended by later calls.

    Args:
        path: JSON file; it is read if it exists.
    """

    def __init__(self, path: Path):
        self.path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.facts: dict[str, Any] = known.get("facts", {})
        self.runs: dict[str, dict] = known.get("runs", {})

    def add_call(self, raw: Path | None = None) -> None:
        """Records machine and command line of this process, each once."""
        for key, value in (("machines", machine()), ("calls", command(raw))):
            self.facts[key] = list(dict.fromkeys([*self.facts.get(key, []), value]))

    def add(self, name: str, run: dict) -> None:
        """Adds the results of a run and writes the file."""
        self.runs[name] = run
        self.save()

    def save(self) -> None:
        """Writes the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"facts": self.facts, "runs": self.runs}, ensure_ascii=False)
        self.path.write_text(text.replace('}, "', '},\n"') + "\n", encoding="utf-8")

    def by_model(self, names: Sequence[str], **wanted: Any) -> dict[str, list[dict]]:
        """Returns the runs of each model that has any, ordered by seed.

        Args:
            names: models, in the order of the tables.
            wanted: required values of other fields.
        """
        runs = [run for run in self.runs.values() if all(run.get(key) == value for key, value in wanted.items())]
        found = {name: [run for run in runs if run["model"] == name] for name in names}
        return {name: sorted(of_model, key=lambda run: run["seed"]) for name, of_model in found.items() if of_model}

    def provenance(self) -> list[str]:
        """Returns the last paragraphs of a report: commands and machines."""
        return [COMMANDS, "\n".join(["```", *self.facts["calls"], "```"]), "  \n".join(self.facts["machines"])]


@contextmanager
def progress_logged() -> Iterator[None]:
    """Logs the steps of recipes; of fairseq only warnings."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(message)s", datefmt="%H:%M:%S")
    with only_warnings(["fairseq"]):
        yield

"""Stages of measurements: points that are measured once, within a time limit, and their report."""

import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.lib.reporting import Store, command, machine, table
from docnmt_fairseq import cli
from docnmt_fairseq.registry import Registry

RECIPE = "en_de_manuals_gpu"
Figures = dict[str, Any]
Point = tuple[str, Callable[[], Figures]]
BASELINES = {  # stage: baseline with the same size, and the figures that are compared with it
    "attention": ("flash", ("forward ms", "both ms")),
    "training": ("stock", ("tokens/s",)),
    "translating": ("stock", ("tokens/s",)),
}
MAX_CHARACTERS = 300  # of an error in the report


@dataclass(frozen=True)
class Setting:
    """Configuration of all stages.

    Attributes:
        output: folder of STAGE.json and of intermediate files.
        dry: tiny sizes on any device.
        raw: text of the recipe.
        prepared: prepared output of the recipe; None: prepare it.
        pack: folder of packed files.
        recipe: name of the recipe of ``real-text``.
    """

    output: Path
    dry: bool = False
    raw: Path | None = None
    prepared: Path | None = None
    pack: Path = Path("work/gpu-pack")
    recipe: str = RECIPE

    @property
    def device(self) -> torch.device:
        """Returns the GPU, or the CPU if there is none."""
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def text(self) -> Path:
        """Returns the prepared output of the recipe, of artificial text without --prepared."""
        folder = self.prepared or self.output / "artificial"
        words = ["recipe", self.recipe, "--smoke", "--stop-after", "prepare", "--output", str(folder), "--workers", "1"]
        if not (folder / "data" / "manifest.json").exists() and cli.main(words):
            raise RuntimeError(f"{folder}: artificial text could not be prepared")
        return folder


class Stage:
    """Contract of a stage: points to measure, most important first.

    Class attributes:
        minutes: time limit; a point that may exceed it is not started.
        needs_gpu: requires a GPU, except for a dry run.
        resumable: an interrupted point continues where it stopped, so that it may be started at any time.
    """

    minutes: float = 9.0
    needs_gpu: bool = True
    resumable: bool = False

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        raise NotImplementedError


STAGES: Registry[Stage] = Registry("stage of GPU measurements")


@dataclass
class Outcome:
    """Names of points: existing, measured now, failed, and skipped for lack of time."""

    existing: list[str] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def run_stage(
    name: str, setting: Setting, now: Callable[[], float] = time.monotonic, minutes: float | None = None
) -> Outcome:
    """Measures the points of a stage that its JSON file does not have, and writes each at once.

    A point that fails is stored with its error and measured again by the next call.

    Args:
        name: stage.
        setting: configuration.
        now: clock in seconds.
        minutes: time limit; None: that of the stage.
    """
    stage, outcome = STAGES[name](), Outcome()
    limit = 60 * (stage.minutes if minutes is None else minutes)
    store, cuda = Store(setting.output / f"{name}.json"), setting.device.type == "cuda"
    device = torch.cuda.get_device_name() if cuda else "CPU"
    store.facts.update(command=command(), machine=machine(), device=device, dry=setting.dry)
    begin, longest = now(), 0.0
    for point, measure in stage.points(setting):
        if "error" not in store.runs.get(point, {"error": ""}):
            outcome.existing.append(point)
            continue
        started = now()
        if started + (0 if stage.resumable else longest) > begin + limit:
            outcome.skipped.append(point)
            continue
        try:
            store.add(point, measure())
            outcome.measured.append(point)
        except Exception as error:  # other points are still measured
            store.add(point, {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
            outcome.failed.append(point)
        if cuda:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        longest = max(longest, now() - started)
    store.save()
    return outcome


def milliseconds(call: Callable[[], object], device: torch.device, rounds: int, warmup: int = 3) -> float:
    """Returns the median time of a call, by events of the GPU or the clock of the CPU."""
    for _ in range(warmup):
        call()
    times = []
    for _ in range(rounds):
        if device.type == "cuda":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            call()
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last))
        else:
            begin = time.perf_counter()
            call()
            times.append(1000 * (time.perf_counter() - begin))
    return sorted(times)[len(times) // 2]


def peak_memory(call: Callable[[], object], device: torch.device) -> float:
    """Returns the MB of GPU memory that a call needs beyond what is allocated; 0 on a CPU."""
    if device.type != "cuda":
        call()
        return 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    allocated = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - allocated) / 1e6


def with_ratios(stage: str, runs: dict[str, Figures]) -> dict[str, Figures]:
    """Returns the points of a stage with their ratios to the baseline, above 1 if they are faster."""
    if stage not in BASELINES:
        return runs
    baseline, figures = BASELINES[stage]
    found = {}
    for point, run in runs.items():
        base = runs.get("/".join([*point.split("/")[:-1], baseline]), {})
        found[point] = dict(run)
        for name in figures:
            if name in run and name in base:
                value = base[name] / run[name] if name.endswith("ms") else run[name] / base[name]
                found[point][f"{name}, speed ÷ {baseline}"] = value
    return found


def shown(value: Any) -> str:
    """Returns a figure for the report."""
    if isinstance(value, dict):
        return "; ".join(f"`{name}` {shown(figure)}" for name, figure in value.items())
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).split())[-MAX_CHARACTERS:]


def stage_table(runs: dict[str, Figures]) -> str:
    """Returns a table of figures by point; other values are listed below."""
    numbers = {name: {k: v for k, v in run.items() if isinstance(v, (int, float))} for name, run in runs.items()}
    columns = list(dict.fromkeys(column for run in numbers.values() for column in run))
    rows = [
        [name, *(shown(run[column]) if column in run else "" for column in columns)] for name, run in numbers.items()
    ]
    others = [
        f"- {name}: {key}: {shown(value)}"
        for name, run in runs.items()
        for key, value in run.items()
        if value and not isinstance(value, (int, float))
    ]
    return "\n\n".join([table(["point", *columns], rows), *(["\n".join(others)] if others else [])])


def write_report(output: Path) -> str:
    """Writes ``gpu.md`` from the JSON files of the stages, and returns it."""
    parts = ["# On a GPU"]
    for name in STAGES.names():
        path = output / f"{name}.json"
        if path.exists():
            store = Store(path)
            good = {point: run for point, run in store.runs.items() if "error" not in run}
            failed = [f"- {point}: {run['error']}" for point, run in store.runs.items() if "error" in run]
            dry = " **Dry run: the figures mean nothing.**" if store.facts.get("dry") else ""
            facts = [
                f"`{store.facts.get('command')}`  ",
                f"{store.facts.get('machine')}; {store.facts.get('device')}.{dry}",
            ]
            parts += [f"## {name}", "\n".join(facts), *([stage_table(with_ratios(name, good))] if good else [])]
            parts += ["\n".join(["Failed:", "", *failed])] if failed else []
    text = "\n\n".join(parts)
    (output / "gpu.md").write_text(text + "\n", encoding="utf-8")
    return text

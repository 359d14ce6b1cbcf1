"""What a stage of the run-book is, and how one is run: point by point, each kept, within its time."""

import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import torch

from benchmarks.lib.machine import command, machine
from benchmarks.lib.store import Store
from docnmt_fairseq.registry import Registry

Figures = Dict[str, Any]
Point = Tuple[str, Callable[[], Figures]]


@dataclass(frozen=True)
class Setting:
    """Where a stage runs.

    Attributes:
        output: folder of ``STAGE.json`` and ``STAGE.md``, and of what a stage makes on its way.
        dry: toy sizes, on whatever device there is; the figures mean nothing.
        data: a data-bin for training and translating; None: one of made-up text is made.
        raw: the text of the recipe that is run on real text.
        prepared: what that recipe made of it; None: it is prepared here.
        pack: a folder of what is to be carried to the machine.
    """

    output: Path
    dry: bool = False
    data: Optional[Path] = None
    raw: Optional[Path] = None
    prepared: Optional[Path] = None
    pack: Path = Path("work/gpu-pack")

    @property
    def device(self) -> torch.device:
        """The GPU, or the CPU of a dry run."""
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Stage:
    """Contract: points to measure, in the order of their worth.

    Class attributes:
        minutes: that it may take; no point is begun that would not end within them.
        needs_gpu: whether it means anything elsewhere, but for a dry run.
        goes_on: whether a point that is killed goes on where it was, so that one may be begun as long as there is time.
    """

    minutes: float = 9.0
    needs_gpu: bool = True
    goes_on: bool = False

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and what measures them."""
        raise NotImplementedError


STAGES: Registry[Stage] = Registry("stage of the run-book")


@dataclass
class Outcome:
    """What became of a stage: names of points that were measured before, now, that failed, and that had no time."""

    before: List[str] = field(default_factory=list)
    measured: List[str] = field(default_factory=list)
    failed: List[str] = field(default_factory=list)
    left: List[str] = field(default_factory=list)


def run_stage(
    name: str, setting: Setting, now: Callable[[], float] = time.monotonic, minutes: Optional[float] = None
) -> Outcome:
    """Runs the points of a stage that are not in its JSON file yet; every one is written at once.

    A point that fails is told with its error and does not stop the others; run again, it is tried again.

    Args:
        name: of the stage.
        setting: where.
        now: the time in seconds.
        minutes: that it may take; None: the stage's own.
    """
    stage, outcome = STAGES[name](), Outcome()
    limit = 60 * (stage.minutes if minutes is None else minutes)
    store = Store(setting.output / f"{name}.json")
    store.facts.update(command=command(), machine=machine(), device=device_name(setting.device), dry=setting.dry)
    begin, longest = now(), 0.0
    for point, measure in stage.points(setting):
        if "error" not in store.runs.get(point, {"error": ""}):
            outcome.before.append(point)
            continue
        started = now()
        if started + (0 if stage.goes_on else longest) > begin + limit:
            outcome.left.append(point)
            continue
        try:
            store.add(point, measure())
            outcome.measured.append(point)
        except Exception as error:  # a machine is lent for minutes: the other points must be measured
            store.add(point, {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
            outcome.failed.append(point)
        release(setting.device)
        longest = max(longest, now() - started)
    store.save()
    return outcome


def release(device: torch.device) -> None:
    """Gives memory back, so that the next point starts from none."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def device_name(device: torch.device) -> str:
    """What is measured on."""
    return torch.cuda.get_device_name() if device.type == "cuda" else "CPU"


def milliseconds(call: Callable[[], object], device: torch.device, rounds: int, warmup: int = 3) -> float:
    """The median time of a call on a device, each between two events of the device, or by the clock of a CPU."""
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
    """MB that a call needs beyond what is held before; 0 on a CPU, where nobody counts them."""
    if device.type != "cuda":
        call()
        return 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - held) / 1e6


def good(runs: Mapping[str, Figures]) -> Dict[str, Figures]:
    """The points that did not fail."""
    return {name: run for name, run in runs.items() if "error" not in run}

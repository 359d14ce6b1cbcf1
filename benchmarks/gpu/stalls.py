"""Stage ``stalls``: every place at which a training step waits for the GPU, and where the GPU's time goes."""

import traceback
import warnings
from collections import Counter
from typing import Counter as CounterOf
from typing import Dict, Iterator, List

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.gpu.training import SYSTEMS, TYPES, system
from benchmarks.lib.machine import ROOT

PRODUCTS = ("gemm", "matmul", "cutlass", "nvjet", "xmma", "_mm", "addmm", "linear")  # in names of kernels
LONGEST, NAME = 12, 60  # kernels, and characters of their names


@STAGES.register("stalls")
class Stalls(Stage):
    """One step of each system, after some that warm up."""

    minutes = 4.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        for name in SYSTEMS:
            yield f"waits/{name}", lambda name=name: waits(name, setting)
        for name in SYSTEMS[:3]:
            yield f"profile/{name}", lambda name=name: profiled(name, setting)


def waits(name: str, setting: Setting) -> Figures:
    """Returns how often one step waits for the GPU, by the line of this package or of fairseq that made it."""
    own = system(name, TYPES["bf16"], 200 if setting.dry else 4096, setting)
    first, second = own.samples(0, 2)
    own.step(first)
    places: CounterOf[str] = Counter()

    def note(message: object, *_: object, **__: object) -> None:
        if "synchroniz" in str(message):
            places[place(traceback.extract_stack()[:-1])] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before, warnings.showwarning = warnings.showwarning, note
        try:
            if setting.device.type == "cuda":
                torch.cuda.set_sync_debug_mode("warn")
            own.step(second, wait=False)
        finally:
            warnings.showwarning = before
            if setting.device.type == "cuda":
                torch.cuda.set_sync_debug_mode("default")
    return {"waits": sum(places.values()), "places": dict(places.most_common())}


def place(stack: List[traceback.FrameSummary]) -> str:
    """The innermost line that is not PyTorch's."""
    for frame in reversed(stack):
        if "/torch/" not in frame.filename and "warnings.py" not in frame.filename:
            return f"{frame.filename.removeprefix(f'{ROOT}/')}:{frame.lineno}"
    return "PyTorch"


def profiled(name: str, setting: Setting) -> Figures:
    """Returns ms from the first kernel to the last, of kernels alone, what share that leaves idle, the longest kernels.

    The profiler slows down whoever launches kernels, so more is idle than without it.
    """
    own = system(name, TYPES["bf16"], 200 if setting.dry else 16_384, setting)
    samples = list(own.samples(0, 4))
    for sample in samples[:3]:
        own.step(sample)
    cuda = setting.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as found:
        own.step(samples[3])
    kind = DeviceType.CUDA if cuda else DeviceType.CPU
    events = [event for event in found.events() if event.device_type == kind and not event.is_user_annotation]
    times: Dict[str, float] = {}
    for event in events:
        time = event.self_device_time_total if cuda else event.self_cpu_time_total
        times[event.name] = times.get(event.name, 0.0) + time / 1000
    total = sum(times.values())
    spans = [event.time_range for event in events]
    whole = (max(span.end for span in spans) - min(span.start for span in spans)) / 1000
    in_products = sum(time for key, time in times.items() if any(word in key.lower() for word in PRODUCTS))
    short: Dict[str, float] = {}
    for key, time in times.items():
        short[key[:NAME]] = short.get(key[:NAME], 0.0) + time
    return {
        "ms": whole, "ms busy": total, "share idle": max(0.0, 1 - total / whole),
        "share in products": in_products / total, "operations": len(events),
        "kernels": dict(sorted(short.items(), key=lambda one: -one[1])[:LONGEST]),
    }  # fmt: skip

"""What ``docnmt doctor`` looks at: every check tries the thing itself, and tells what it found with a remedy."""

import contextlib
import importlib
import importlib.metadata
import math
import os
import platform
import tempfile
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import docnmt_fairseq
from docnmt_fairseq.errors import first_line

PACKAGE = docnmt_fairseq.__name__
OK = "ok"
OFF = "off"  # something optional is not there, or slower than it could be
BROKEN = "broken"  # something needed does not work

IMPORTED_AS = {
    "fairseq-fixed": "fairseq",
    "pyyaml": "yaml",
    "pillow": "PIL",
}  # needed libraries with another name in Python
EXTRAS = {  # what is shown, and what for
    "jieba": "Chinese words",
    "bpe": "docnmt prepare --subwords subword-nmt",
    "parquet": "docnmt prepare --format parquet, and .zst files",
    "embed": "docnmt embed fit --method sif",
    "triton": "--context-kernel triton on a GPU",
    "documents": "docnmt translate of any format but text",
    "serve": "docnmt serve",
    "pretrained": "docnmt import",
    "alignment": "docnmt score --metrics lexical-consistency",
    "ray": "--engine ray",
    "ctranslate2": "docnmt export --format ctranslate2",
    "comet": "docnmt score --metrics comet",
}
KERNEL_REMEDIES = {
    "compiled": "install a C++ compiler (e.g. apt-get install g++), or name one that works in CXX",
    "triton": f"pip install '{PACKAGE}[triton]'; without a GPU it is of no use",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        part: what it belongs to; the heading it is shown under.
        name: of the thing.
        state: ``ok``, ``off`` or ``broken``.
        detail: a version, a place, or what is wrong; one line.
        remedy: what to do, where something is to be done; one line.
    """

    part: str
    name: str
    state: str
    detail: str
    remedy: str = ""


def examine() -> List[Finding]:
    """All findings; a check that fails itself is one, too."""
    findings: List[Finding] = []
    for part, check in CHECKS.items():
        try:
            findings += [Finding(part, *found) for found in check()]
        except Exception as error:  # whatever an installation that is half broken happens to cause
            findings.append(Finding(part, "check", BROKEN, first_line(error), "mend what is broken above"))
    return findings


Found = Tuple[str, ...]  # a finding but for its part


def needed_libraries() -> Iterator[Found]:
    """Python and every library that the package requires: there, importable, and new enough."""
    python = platform.python_version()
    try:
        metadata = importlib.metadata.metadata(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        yield PACKAGE, BROKEN, "not installed, only found as a folder", "pip install -e FOLDER_OF_THE_REPOSITORY"
        return
    yield PACKAGE, OK, f"{docnmt_fairseq.__version__} in {Path(docnmt_fairseq.__file__).parent}"
    versions = metadata["Requires-Python"]
    state = OK if SpecifierSet(versions).contains(python) else BROKEN
    yield "Python", state, python, "" if state == OK else f"make an environment with Python {versions}"
    for requirement in _requirements():
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _library(requirement)


def plugin() -> Iterator[Found]:
    """Whether fairseq takes the tasks, models and architectures."""
    docnmt_fairseq.register()
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    for name, registry in (("tasks", TASK_REGISTRY), ("architectures", ARCH_MODEL_REGISTRY)):
        ours = sum(cls.__module__.startswith(PACKAGE) for cls in registry.values())
        yield name, OK if ours else BROKEN, f"{ours} registered with fairseq"


def checkpoints() -> Iterator[Found]:
    """Whether fairseq's checkpoints load, and whether a file that executes something is refused."""
    import numpy as np
    import torch
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    from docnmt_fairseq import compat  # noqa: F401  (tells the safe loader what fairseq's checkpoints hold)

    with tempfile.TemporaryDirectory() as folder:
        harmless, harmful, trace = (Path(folder) / name for name in ("harmless.pt", "harmful.pt", "trace"))
        torch.save({"args": Namespace(arch="x"), "counts": np.arange(3), "best_loss": np.float64(1)}, harmless)
        torch.save({"args": _Executing(str(trace))}, harmful)
        try:
            torch.load(harmless, weights_only=True)
            yield "safe loading", OK, "of fairseq's checkpoints"
        except Exception as error:
            yield "safe loading", BROKEN, first_line(error), "install the PyTorch that constraints.txt names"
        with contextlib.suppress(Exception):  # only what it did counts
            load_checkpoint_to_cpu(str(harmful))
        if trace.exists():
            remedy = "load only checkpoints that you trust"
            if "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" in os.environ:
                remedy += ", or unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
            else:
                remedy += ", or install torch>=2.6"
            yield "harmful files", OFF, "whatever a checkpoint holds is executed", remedy
        else:
            yield "harmful files", OK, "refused"


def kernels() -> Iterator[Found]:
    """Every attention kernel on every device here; one that has to be built is built now."""
    import torch

    from docnmt_fairseq.context.conditional.kernels import KERNELS, kernel_for

    for device in map(torch.device, ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)):
        for name in KERNELS.names():
            kernel = KERNELS[name]()
            if kernel.serves(device, torch.float32):
                yield f"{name} on {device}", OK, "usable"
            elif reason := kernel.missing():
                yield f"{name} on {device}", OFF, reason, KERNEL_REMEDIES.get(name, "")
        names = {KERNELS[name]: name for name in KERNELS.names()}
        takes, for_half = (
            names[type(kernel_for("auto", torch.empty(0, dtype=dtype, device=device)))]
            for dtype in (torch.float32, torch.bfloat16)
        )
        yield f"auto on {device}", OK, f"takes {takes}" + (f", for half types {for_half}" if for_half != takes else "")


def threads() -> Iterator[Found]:
    """Whether PyTorch computes with as many threads as there are processors for it."""
    import torch

    available, used = processors(), torch.get_num_threads()
    detail = f"{used} of PyTorch, {available} {'processor' if available == 1 else 'processors'} to be used"
    if used > available:
        yield "threads", OFF, f"{detail}: they get in each other's way", f"export OMP_NUM_THREADS={available}"
    else:
        yield "threads", OK, detail


def matrix_products() -> Iterator[Found]:
    """Whether fewer bits are faster here: processors that know bfloat16 need not be fast at it."""
    from docnmt_fairseq.cli import _arithmetic as arithmetic

    speeds = {precision: arithmetic.products_a_second(precision) for precision in arithmetic.PRECISIONS}
    usual = arithmetic.PRECISIONS[0]
    for precision, speed in speeds.items():
        detail = f"{speed / 1e9:,.0f} billion a second"
        if not speed:
            yield precision, OFF, "this PyTorch has none of packed weights", "install the PyTorch that is pinned"
        elif precision == usual:
            yield precision, OK, detail
        else:
            detail += f", {speed / speeds[usual]:.1f} times as many" if speeds[usual] else ""
            yield precision, *((OK, detail) if speed >= speeds[usual] else (OFF, detail, f"use {usual} here"))


def gpu() -> Iterator[Found]:
    """Every GPU that PyTorch can compute on, or why there is none."""
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "a build without CUDA"
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            facts = torch.cuda.get_device_properties(number)
            detail = f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB, {build}"
            try:
                torch.ones(2, device=f"cuda:{number}").sum().item()
                yield f"GPU {number}", OK, detail
            except RuntimeError as error:
                yield f"GPU {number}", OFF, f"{detail}: {first_line(error)}", "install a PyTorch build for this GPU"
    elif not has_nvidia_gpu():
        yield "GPU", OK, f"none here; PyTorch is {build}"
    elif torch.version.cuda:
        yield "GPU", OFF, f"there, but {build} cannot use it", "update the driver, or look at CUDA_VISIBLE_DEVICES"
    else:
        remedy = "pip install --force-reinstall torch, from an index with builds for CUDA"
        yield "GPU", OFF, f"there, but PyTorch is {build}", remedy


def optional_libraries() -> Iterator[Found]:
    """What only some commands need."""
    for requirement in _requirements():
        extra = next((name for name in EXTRAS if _is_of(requirement, name)), None)
        if extra is None:
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            remedy = f"pip install '{PACKAGE}[{extra}]'"
            yield requirement.name, OFF, f"not installed; for {EXTRAS[extra]}", remedy
            continue
        if requirement.specifier.contains(version, prereleases=True):
            yield requirement.name, OK, f"{version}, for {EXTRAS[extra]}"
        else:
            yield requirement.name, OFF, f"{version} is too old for {EXTRAS[extra]}", _install(requirement)


CHECKS: Dict[str, Callable[[], Iterator[Found]]] = {
    "Needed libraries": needed_libraries,
    "Plugin": plugin,
    "Checkpoints": checkpoints,
    "Attention kernels (--context-kernel)": kernels,
    "Threads": threads,
    "Matrix products on one thread (--precision, --bf16)": matrix_products,
    "GPU": gpu,
    "Optional libraries": optional_libraries,
}


def processors() -> int:
    """The processors that this process may use, also where a container's share is less than what it sees."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(seen, math.ceil(int(share) / int(period)))
    except (OSError, ValueError):  # no such file, or the share is "max"
        return seen


def has_nvidia_gpu() -> bool:
    """Whether the machine has a GPU of NVIDIA's with a driver, whatever PyTorch makes of it."""
    return any(Path(file).exists() for file in ("/dev/nvidiactl", "/dev/dxg"))


class _Executing:
    """Makes a folder when it is unpickled: stands for a checkpoint that executes something."""

    def __init__(self, folder: str):
        self.folder = folder

    def __reduce__(self) -> Tuple[Callable[[str], None], Tuple[str]]:
        return os.mkdir, (self.folder,)


def _requirements() -> List[Requirement]:
    return [Requirement(text) for text in importlib.metadata.requires(PACKAGE) or []]


def _is_of(requirement: Requirement, extra: str) -> bool:
    """Whether a requirement belongs to an extra alone."""
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


def _library(requirement: Requirement) -> Found:
    name = requirement.name
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return name, BROKEN, "not installed", _install(requirement)
    try:
        importlib.import_module(IMPORTED_AS.get(name.lower(), name))
    except Exception as error:  # whatever an installation that is half broken happens to cause
        remedy = _install(requirement, "--force-reinstall ")
        return name, BROKEN, f"{version} cannot be imported: {first_line(error)}", remedy
    if not requirement.specifier.contains(version, prereleases=True):
        return name, BROKEN, f"{version} does not serve", _install(requirement)
    return name, OK, version


def _install(requirement: Requirement, options: str = "") -> str:
    return f"pip install {options}'{requirement.name}{requirement.specifier}'"

"""Reports what is installed and what works: libraries, checkpoints, attention kernels, matrix products, threads, GPU.

Each line is ok, off (an optional feature is missing or slow) or BROKEN (a core dependency fails), with a remedy.
Exit status 1 if anything is BROKEN.
"""

import argparse
import contextlib
import dataclasses
import importlib
import importlib.metadata
import json
import math
import os
import platform
import tempfile
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import docnmt_fairseq
from docnmt_fairseq.errors import first_line

HELP = "report what is installed, what works, and how to fix the rest"
PACKAGE = docnmt_fairseq.__name__
OK = "ok"
OFF = "off"
BROKEN = "broken"

MODULES = {"fairseq-fixed": "fairseq", "pyyaml": "yaml", "pillow": "PIL"}  # distributions whose module differs in name
EXTRAS = {  # optional dependencies of users, and the features that need them
    "jieba": "Chinese word segmentation",
    "bpe": "docnmt prepare --subwords subword-nmt",
    "parquet": "docnmt prepare --format parquet and .zst files",
    "embed": "docnmt embed fit --method sif",
    "triton": "--context-kernel triton on a GPU",
    "documents": "docnmt translate of formats other than plain text",
    "serve": "docnmt serve",
    "pretrained": "docnmt import",
    "alignment": "docnmt score --metrics lexical-consistency",
    "ray": "--engine ray",
    "ctranslate2": "docnmt export --format ctranslate2",
    "comet": "docnmt score --metrics comet",
}
KERNEL_REMEDIES = {
    "compiled": "install a C++ compiler (e.g. apt-get install g++) or set CXX",
    "triton": f"pip install '{PACKAGE}[triton]' (GPU only)",
}
ROWS, INPUTS, OUTPUTS = 256, 512, 2048  # of the matrix product that is timed
SECONDS = 0.05  # that it is repeated


@dataclass(frozen=True)
class Finding:
    """Result of one check.

    Attributes:
        part: heading of the check.
        name: thing that was checked.
        state: ``ok``, ``off`` or ``broken``.
        detail: version, location or error; one line.
        remedy: what to do if the state is not ``ok``; one line.
    """

    part: str
    name: str
    state: str
    detail: str
    remedy: str = ""


Found = Tuple[str, ...]  # a finding without its part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the output format."""
    parser.add_argument("--json", action="store_true", help="print a JSON list of findings")


def run(args: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if a core dependency does not work."""
    findings = examine()
    if args.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], ensure_ascii=False, indent=1))
    else:
        print(as_text(findings))
    return int(any(finding.state == BROKEN for finding in findings))


def examine() -> List[Finding]:
    """Runs all checks. An optional check that raises is off; only core checks can be broken."""
    findings: List[Finding] = []
    for checks, failed in ((CORE, BROKEN), (OPTIONAL, OFF)):
        for part, check in checks.items():
            try:
                findings += [Finding(part, *found) for found in check()]
            except Exception as error:  # a damaged installation can raise anything
                findings.append(Finding(part, "check", failed, first_line(error), "reinstall the libraries above"))
    return findings


def as_text(findings: List[Finding]) -> str:
    """Formats findings: a heading per part, a line per finding, its remedy below."""
    lines: List[str] = []
    width = max(len(finding.name) for finding in findings)
    part = None
    for finding in findings:
        if finding.part != part:
            part = finding.part
            lines.append(part)
        state = finding.state.upper() if finding.state == BROKEN else finding.state
        lines.append(f"  {state:<6}  {finding.name:<{width}}  {finding.detail}")
        if finding.remedy:
            lines.append(f"          {'':<{width}}  → {finding.remedy}")
    broken, off = (sum(finding.state == state for finding in findings) for state in (BROKEN, OFF))
    verdict = f"Core dependencies that do not work: {broken}." if broken else "All core dependencies work."
    return "\n".join([*lines, "", f"{verdict} Optional features that are off: {off}." if off else verdict])


def core_libraries() -> Iterator[Found]:
    """Checks that Python and each required library are installed, importable and new enough."""
    try:
        metadata = importlib.metadata.metadata(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        yield PACKAGE, BROKEN, "not installed, only found as a folder", "pip install -e FOLDER_OF_THE_REPOSITORY"
        return
    yield PACKAGE, OK, f"{docnmt_fairseq.__version__} in {Path(docnmt_fairseq.__file__).parent}"
    python, versions = platform.python_version(), metadata["Requires-Python"]
    supported = SpecifierSet(versions).contains(python)
    yield "Python", *((OK, python) if supported else (BROKEN, python, f"create an environment with Python {versions}"))
    for requirement in requirements():
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _library(requirement)


def plugin() -> Iterator[Found]:
    """Checks that fairseq accepts the tasks and architectures."""
    docnmt_fairseq.register()
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    for name, registry in (("tasks", TASK_REGISTRY), ("architectures", ARCH_MODEL_REGISTRY)):
        registered = sum(cls.__module__.startswith(PACKAGE) for cls in registry.values())
        yield name, OK if registered else BROKEN, f"{registered} registered with fairseq"


def checkpoints() -> Iterator[Found]:
    """Checks that fairseq checkpoints load safely and that a file that executes code is rejected."""
    import numpy as np
    import torch
    from fairseq.checkpoint_utils import load_checkpoint_to_cpu

    docnmt_fairseq.register()  # tells the safe loader what fairseq's checkpoints contain
    with tempfile.TemporaryDirectory() as folder:
        harmless, harmful, trace = (Path(folder) / name for name in ("harmless.pt", "harmful.pt", "trace"))
        torch.save({"args": Namespace(arch="x"), "counts": np.arange(3), "best_loss": np.float64(1)}, harmless)
        torch.save({"args": _Executing(str(trace))}, harmful)
        try:
            torch.load(harmless, weights_only=True)
            yield "safe loading", OK, "of fairseq's checkpoints"
        except Exception as error:
            yield "safe loading", BROKEN, first_line(error), "install the PyTorch version of requirements.lock"
        with contextlib.suppress(Exception):  # only the side effect counts
            load_checkpoint_to_cpu(str(harmful))
        if trace.exists():
            remedy = "load only checkpoints that you trust"
            if "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" in os.environ:
                remedy += ", or unset TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
            else:
                remedy += ", or install torch>=2.6"
            yield "harmful files", OFF, "code in a checkpoint is executed", remedy
        else:
            yield "harmful files", OK, "rejected"


def kernels() -> Iterator[Found]:
    """Checks each attention kernel on each device; the compiled one is built if necessary."""
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
        chosen, for_half = (
            names[type(kernel_for("auto", torch.empty(0, dtype=dtype, device=device)))]
            for dtype in (torch.float32, torch.bfloat16)
        )
        yield f"auto on {device}", OK, f"uses {chosen}" + (f", for half types {for_half}" if for_half != chosen else "")


def threads() -> Iterator[Found]:
    """Checks that PyTorch does not use more threads than there are processors."""
    import torch

    available, used = processors(), torch.get_num_threads()
    detail = f"{used} used by PyTorch, {available} {'processor' if available == 1 else 'processors'} available"
    if used > available:
        yield "threads", OFF, f"{detail}: slow", f"export OMP_NUM_THREADS={available}"
    else:
        yield "threads", OK, detail


def matrix_products() -> Iterator[Found]:
    """Measures the products of each precision; a processor that supports bfloat16 may be slow at it."""
    from docnmt_fairseq.layers.packed_linear import BF16, FLOAT32, PRECISIONS, available
    from docnmt_fairseq.native import cpu

    speeds = {precision: operations_per_second(precision) for precision in PRECISIONS if available(precision)}
    for precision in PRECISIONS:
        if precision not in speeds:
            yield precision, OFF, "no packed products in this PyTorch build", "install the PyTorch of requirements.lock"
            continue
        ratio = speeds[precision] / speeds[FLOAT32] if FLOAT32 in speeds else 1.0
        detail = f"{speeds[precision] / 1e9:,.0f} billion operations/s"
        detail += f", {ratio:.1f} × float32" if precision != FLOAT32 else ""
        if precision == BF16 and not cpu.capabilities().bf16:
            yield precision, OFF, f"{detail}; not supported by this CPU, computed in float32", "use float32"
        elif ratio < 1:
            yield precision, OFF, detail, "use float32"
        else:
            yield precision, OK, detail


def operations_per_second(precision: str) -> float:
    """Returns multiplications plus additions per second of a packed linear layer on one thread."""
    import torch

    from docnmt_fairseq.layers.packed_linear import PackedLinear

    threads, linear = torch.get_num_threads(), PackedLinear(INPUTS, OUTPUTS)
    rows = torch.randn(ROWS, INPUTS)
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            linear.pack(precision)
            linear(rows)
            start, times = time.perf_counter(), 0
            while time.perf_counter() - start < SECONDS:
                linear(rows)
                times += 1
            return 2 * ROWS * INPUTS * OUTPUTS * times / (time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)


def gpu() -> Iterator[Found]:
    """Checks each GPU that PyTorch can use, or reports why there is none."""
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
        yield "GPU", OK, f"none found; PyTorch is {build}"
    elif torch.version.cuda:
        yield "GPU", OFF, f"found, but {build} cannot use it", "update the driver, check CUDA_VISIBLE_DEVICES"
    else:
        yield "GPU", OFF, f"found, but PyTorch is {build}", "install a CUDA build of PyTorch"


def optional_libraries() -> Iterator[Found]:
    """Checks the libraries of each extra."""
    for requirement in requirements():
        extra = next((name for name in EXTRAS if _belongs_to(requirement, name)), None)
        if extra is None:
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            remedy = f"pip install '{PACKAGE}[{extra}]'"
            yield requirement.name, OFF, f"not installed; required by {EXTRAS[extra]}", remedy
            continue
        if requirement.specifier.contains(version, prereleases=True):
            yield requirement.name, OK, f"{version}, for {EXTRAS[extra]}"
        else:
            yield requirement.name, OFF, f"{version} is too old for {EXTRAS[extra]}", _install(requirement)


CORE: Dict[str, Callable[[], Iterator[Found]]] = {
    "Core libraries": core_libraries,
    "Plugin": plugin,
    "Checkpoints": checkpoints,
}
OPTIONAL: Dict[str, Callable[[], Iterator[Found]]] = {
    "Attention kernels (--context-kernel)": kernels,
    "Threads": threads,
    "Matrix products on one thread (--precision, --bf16)": matrix_products,
    "GPU": gpu,
    "Optional libraries": optional_libraries,
}


def processors() -> int:
    """Returns the number of processors that this process may use, including a container's limit."""
    seen = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return min(seen, math.ceil(int(share) / int(period)))
    except (OSError, ValueError):  # no such file, or no limit ("max")
        return seen


def has_nvidia_gpu() -> bool:
    """Returns whether the machine has an NVIDIA GPU with a driver, even if PyTorch cannot use it."""
    return any(Path(file).exists() for file in ("/dev/nvidiactl", "/dev/dxg"))


def requirements() -> List[Requirement]:
    """Returns the requirements of the package, including those of its extras."""
    return [Requirement(text) for text in importlib.metadata.requires(PACKAGE) or []]


class _Executing:
    """Creates a folder when it is unpickled, like a checkpoint with malicious code."""

    def __init__(self, folder: str):
        self.folder = folder

    def __reduce__(self) -> Tuple[Callable[[str], None], Tuple[str]]:
        return os.mkdir, (self.folder,)


def _belongs_to(requirement: Requirement, extra: str) -> bool:
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


def _library(requirement: Requirement) -> Found:
    name = requirement.name
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return name, BROKEN, "not installed", _install(requirement)
    try:
        importlib.import_module(MODULES.get(name.lower(), name))
    except Exception as error:  # a damaged installation can raise anything
        remedy = _install(requirement, "--force-reinstall ")
        return name, BROKEN, f"{version} cannot be imported: {first_line(error)}", remedy
    if not requirement.specifier.contains(version, prereleases=True):
        return name, BROKEN, f"{version} is not supported", _install(requirement)
    return name, OK, version


def _install(requirement: Requirement, options: str = "") -> str:
    return f"pip install {options}'{requirement.name}{requirement.specifier}'"

"""Reports what is installed and what works: libraries, attention kernels, matrix products, GPU.

Each line is ok, off (an optional feature is missing or slow) or BROKEN (a core dependency fails), with a remedy.
Exit status 1 if anything is BROKEN.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import platform
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import docnmt_fairseq
from docnmt_fairseq.errors import first_line

HELP = "report what is installed, what works, and how to fix the rest"
PACKAGE = docnmt_fairseq.__name__
OK, OFF, BROKEN = "ok", "off", "broken"

MODULES = {"fairseq-fixed": "fairseq", "pyyaml": "yaml", "pillow": "PIL"}  # distributions whose module differs in name
EXTRAS = {  # optional dependencies of users, and the features that need them
    "jieba": "Chinese word segmentation",
    "bpe": "docnmt prepare --subwords subword-nmt",
    "parquet": "docnmt prepare --format parquet",
    "zstd": "text packed as .zst",
    "embed": "docnmt embed fit --method sif",
    "triton": "--context-kernel triton on a GPU",
    "documents": "docnmt translate of formats other than plain text",
    "serve": "docnmt serve",
    "pretrained": "docnmt import",
    "alignment": "docnmt score --metrics lexical-consistency",
    "ray": "--engine ray",
    "tensorboard": "fairseq-train --tensorboard-logdir",
    "wandb": "fairseq-train --wandb-project",
    "ctranslate2": "docnmt export --format ctranslate2",
    "comet": "docnmt score --metrics comet",
}
KERNEL_REMEDIES = {
    "compiled": "install a C++ compiler (e.g. apt-get install g++) or set CXX",
    "triton": f"pip install '{PACKAGE}[triton]' (GPU only)",
}
ROWS, INPUTS, OUTPUTS = 256, 512, 2048  # of the matrix product that is timed
SECONDS = 0.05  # that it is repeated


class Finding(NamedTuple):
    """Result of one check: thing checked, ``ok``, ``off`` or ``broken``, version or error, remedy if not ok."""

    name: str
    state: str
    detail: str
    remedy: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the output format."""
    parser.add_argument("--json", action="store_true", help="print a JSON list of findings")


def run(args: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if a core dependency does not work."""
    findings = examine()
    if args.json:
        rows = [{"part": part, **one._asdict()} for part, found in findings.items() for one in found]
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print(as_text(findings))
    return int(any(one.state == BROKEN for found in findings.values() for one in found))


def examine() -> Dict[str, List[Finding]]:
    """Findings by part. An optional check that raises is off; only core checks can be broken."""
    findings: Dict[str, List[Finding]] = {}
    for checks, failed in ((CORE, BROKEN), (OPTIONAL, OFF)):
        for part, check in checks.items():
            found = findings.setdefault(part, [])
            try:
                found.extend(check())
            except Exception as error:  # a damaged installation can raise anything
                found.append(Finding("check", failed, first_line(error), "reinstall the libraries above"))
    return findings


def as_text(findings: Dict[str, List[Finding]]) -> str:
    """Formats findings: a heading per part, a line per finding, its remedy below."""
    lines: List[str] = []
    every = [one for found in findings.values() for one in found]
    width = max(len(one.name) for one in every)
    for part, found in findings.items():
        lines.append(part)
        for name, state, detail, remedy in found:
            lines.append(f"  {state.upper() if state == BROKEN else state:<6}  {name:<{width}}  {detail}")
            lines += [f"          {'':<{width}}  → {remedy}"] if remedy else []
    broken, off = (sum(one.state == state for one in every) for state in (BROKEN, OFF))
    verdict = f"Core dependencies that do not work: {broken}." if broken else "All core dependencies work."
    return "\n".join([*lines, "", f"{verdict} Optional features that are off: {off}." if off else verdict])


def core_libraries() -> Iterator[Finding]:
    """Checks that Python and each required library are installed, importable and new enough."""
    version, folder = docnmt_fairseq.__version__, Path(docnmt_fairseq.__file__).parent
    yield Finding(PACKAGE, OK, f"{version} in {folder}")
    python, versions = platform.python_version(), importlib.metadata.metadata(PACKAGE)["Requires-Python"]
    supported = SpecifierSet(versions).contains(python)
    yield Finding("Python", OK if supported else BROKEN, python, "" if supported else f"install Python {versions}")
    for requirement in requirements():
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            finding = _library(requirement, BROKEN, f"pip install '{requirement.name}{requirement.specifier}'")
            if finding.state == OK:
                try:
                    importlib.import_module(MODULES.get(requirement.name.lower(), requirement.name))
                except Exception as error:  # a damaged installation can raise anything
                    remedy = f"pip install --force-reinstall '{requirement.name}{requirement.specifier}'"
                    finding = Finding(requirement.name, BROKEN, f"cannot be imported: {first_line(error)}", remedy)
            yield finding


def optional_libraries() -> Iterator[Finding]:
    """Checks the libraries of each extra."""
    for requirement in requirements():
        marker = requirement.marker
        if marker is not None and not marker.evaluate({"extra": ""}):
            for extra in [extra for extra in EXTRAS if marker.evaluate({"extra": extra})][:1]:
                yield _library(requirement, OFF, f"pip install '{PACKAGE}[{extra}]'", f", for {EXTRAS[extra]}")
    if importlib.util.find_spec("torchaudio"):  # required by fairseq, imported by transformers if installed
        try:
            importlib.import_module("torchaudio")
        except Exception as error:  # built for another torch: depends on the build
            detail = f"does not load, and transformers fails with it: {first_line(error)}"
            yield Finding("torchaudio", OFF, detail, "pip uninstall torchaudio")


def requirements() -> List[Requirement]:
    """Requirements of the package, including those of its extras."""
    return [Requirement(text) for text in importlib.metadata.requires(PACKAGE) or []]


def _library(requirement: Requirement, state: str, remedy: str, purpose: str = "") -> Finding:
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(requirement.name, state, f"not installed{purpose}", remedy)
    if not requirement.specifier.contains(version, prereleases=True):
        return Finding(requirement.name, state, f"{version} is not supported{purpose}", remedy)
    return Finding(requirement.name, OK, f"{version}{purpose}")


def plugin() -> Iterator[Finding]:
    """Checks that fairseq accepts the tasks and architectures."""
    docnmt_fairseq.register()
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    for name, registry in (("tasks", TASK_REGISTRY), ("architectures", ARCH_MODEL_REGISTRY)):
        registered = sum(cls.__module__.startswith(PACKAGE) for cls in registry.values())
        yield Finding(name, OK if registered else BROKEN, f"{registered} registered with fairseq")


def kernels() -> Iterator[Finding]:
    """Checks each attention kernel on each device; the compiled one is built if necessary."""
    import torch

    from docnmt_fairseq.context.conditional.kernels import KERNELS, kernel_for

    names = {id(kernel): name for name, kernel in KERNELS.items()}
    for device in map(torch.device, ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)):
        for name, kernel in sorted(KERNELS.items()):
            if kernel.serves(device, torch.float32):
                yield Finding(f"{name} on {device}", OK, "usable")
            elif reason := kernel.missing():
                yield Finding(f"{name} on {device}", OFF, reason, KERNEL_REMEDIES.get(name, ""))
        chosen, for_half = (
            names[id(kernel_for("auto", torch.empty(0, dtype=dtype, device=device)))]
            for dtype in (torch.float32, torch.bfloat16)
        )
        yield Finding(f"auto on {device}", OK, f"uses {chosen}, for half types {for_half}")


def matrix_products() -> Iterator[Finding]:
    """Measures the products of each precision; a processor that supports bfloat16 may be slow at it."""
    from docnmt_fairseq.layers.packed_linear import BF16, FLOAT32, PRECISIONS, available
    from docnmt_fairseq.native import cpu

    speeds = {precision: operations_per_second(precision) for precision in PRECISIONS if available(precision)}
    for precision in PRECISIONS:
        if precision not in speeds:
            yield Finding(precision, OFF, "no packed products", "install the PyTorch of requirements.lock")
            continue
        ratio = speeds[precision] / speeds.get(FLOAT32, speeds[precision])
        detail = f"{speeds[precision] / 1e9:,.0f} billion operations/s, {ratio:.1f} × float32"
        if precision == BF16 and not cpu.capabilities().bf16:
            yield Finding(precision, OFF, f"{detail}; not supported by this CPU, computed in float32", "use float32")
        else:
            yield Finding(precision, OFF if ratio < 1 else OK, detail, "use float32" if ratio < 1 else "")


def operations_per_second(precision: str) -> float:
    """Multiplications plus additions per second of a packed linear layer on one thread."""
    import torch
    from torch.utils.benchmark import Timer

    from docnmt_fairseq.layers.packed_linear import PackedLinear

    linear = PackedLinear(INPUTS, OUTPUTS)
    with torch.no_grad():
        linear.pack(precision)
        timer = Timer("linear(rows)", globals={"linear": linear, "rows": torch.randn(ROWS, INPUTS)})  # one thread
        return 2 * ROWS * INPUTS * OUTPUTS / timer.blocked_autorange(min_run_time=SECONDS).median


def gpu() -> Iterator[Finding]:
    """Checks each GPU that PyTorch can use, or reports why there is none."""
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "a build without CUDA"
    for number in range(torch.cuda.device_count()):
        facts: Any = torch.cuda.get_device_properties(number)
        detail = f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB, {build}"
        try:
            torch.ones(2, device=f"cuda:{number}").sum().item()
            yield Finding(f"GPU {number}", OK, detail)
        except RuntimeError as error:
            remedy = "install a PyTorch build for this GPU"
            yield Finding(f"GPU {number}", OFF, f"{detail}: {first_line(error)}", remedy)
    if not torch.cuda.is_available():
        if has_nvidia_gpu():
            remedy = "update the driver, check CUDA_VISIBLE_DEVICES, or install a CUDA build of PyTorch"
            yield Finding("GPU", OFF, f"found, but PyTorch ({build}) cannot use it", remedy)
        else:
            yield Finding("GPU", OK, f"none found; PyTorch is {build}")


def has_nvidia_gpu() -> bool:
    """Whether the machine has an NVIDIA GPU with a driver, even if PyTorch cannot use it."""
    return any(Path(file).exists() for file in ("/dev/nvidiactl", "/dev/dxg"))


CORE: Dict[str, Callable[[], Iterator[Finding]]] = {
    "Core libraries": core_libraries,
    "Plugin": plugin,
}
OPTIONAL: Dict[str, Callable[[], Iterator[Finding]]] = {
    "Attention kernels (--context-kernel)": kernels,
    "Matrix products on one thread (--precision, --bf16)": matrix_products,
    "GPU": gpu,
    "Optional libraries": optional_libraries,
}

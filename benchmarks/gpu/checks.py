"""Stages ``hardware``, ``tests`` and ``demo``: speed of the GPU, tests that need one, and scripts/demo.sh."""

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage, milliseconds
from benchmarks.lib.reporting import ROOT

GROUPS = {  # folders or files with tests that need a GPU
    "kernels and mechanisms": ["tests/context", "tests/layers/test_attention.py"],
    "trainings": ["tests/fairseq_patches/test_half_precision.py"],
}
TEST_SECONDS, DEMO_SECONDS, MAX_WORKERS = 180, 360, 12
CHECKER, CHECKED = "compute-sanitizer", "tests/context/conditional/check_triton.py::test_output_gradients_and_choice"


@STAGES.register("hardware")
class Hardware(Stage):
    """Versions, products of 8,192 × 8,192 matrices."""

    minutes = 2.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        yield "versions", lambda: versions(setting)
        for name in ("float32", "bfloat16", "float16", "tf32"):
            yield f"products/{name}", lambda name=name: products(setting, name)


def versions(setting: Setting) -> Figures:
    """Returns the versions of libraries and driver."""
    has_triton = importlib.util.find_spec("triton") is not None
    triton = importlib.import_module("triton").__version__ if has_triton else None
    found = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton,
    }
    if setting.device.type == "cuda":
        found["capability"] = ".".join(map(str, torch.cuda.get_device_capability()))
        query = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
        found["driver"] = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return found


def products(setting: Setting, name: str) -> Figures:
    """Returns TFLOP/s of products of square matrices."""
    width, dtype = 256 if setting.dry else 8192, torch.float32 if name == "tf32" else getattr(torch, name)
    a, b = (torch.randn(width, width, device=setting.device).to(dtype) for _ in range(2))
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        time_ = milliseconds(lambda: a @ b, setting.device, 3 if setting.dry else 20)
    finally:
        torch.set_float32_matmul_precision(previous)
    return {"TFLOP/s": 2 * width**3 / 1e9 / time_}


@STAGES.register("tests")
class Tests(Stage):
    """Tests that need a GPU, and memory accesses of the kernels under NVIDIA's checker."""

    minutes = 5.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        for group, files in GROUPS.items():
            yield group, lambda files=files: tested(files, setting)
        if shutil.which(CHECKER) is not None:
            yield CHECKER, memory_checked


def pytest_command(*words: str) -> list[str]:
    """Returns a command line of pytest with a time limit."""
    return ["timeout", str(TEST_SECONDS), *words, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def tested(files: list[str], setting: Setting) -> Figures:
    """Returns the numbers of passed, failed and skipped tests, and errors; a dry run only collects."""
    path, workers = setting.output / "pytest.xml", min(MAX_WORKERS, os.cpu_count() or 1)
    path.unlink(missing_ok=True)
    call = [*pytest_command(), "-m", "slow or not slow", "-k", "gpu or cuda"]
    call += ["--collect-only"] if setting.dry else ["--junitxml", str(path)]
    if not setting.dry and workers > 1 and importlib.util.find_spec("xdist") is not None:
        call += ["-n", str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*call, *files], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    if setting.dry and done.returncode == 0:
        return {"collected": sum("::" in line for line in done.stdout.splitlines())}
    if not path.exists():
        raise RuntimeError(f"no report of pytest: {(done.stdout + done.stderr)[-2000:]}")
    cases, failures = list(ElementTree.parse(path).getroot().iter("testcase")), {}
    for case in cases:
        trouble = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        if trouble is not None:
            failures[f"{case.get('classname')}::{case.get('name')}"] = (trouble.text or "")[-3000:]
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - len(failures) - skipped
    return {"passed": passed, "failed": len(failures), "skipped": skipped, "failures": failures}


def memory_checked() -> Figures:
    """Returns the number of wrong memory accesses of the kernels."""
    call = [*pytest_command(CHECKER, "--tool", "memcheck"), CHECKED]
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    summary = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR SUMMARY" in line]
    if not summary or " passed" not in done.stdout:
        raise RuntimeError((done.stdout + done.stderr)[-3000:])
    return {"errors": int(summary[-1].split("ERROR SUMMARY:")[1].split()[0])}


@STAGES.register("demo")
class Demo(Stage):
    """scripts/demo.sh, both models at the same time."""

    minutes = 7.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields name and measuring function."""
        yield "demo", lambda: demo(setting)


def demo(setting: Setting) -> Figures:
    """Returns seconds, exit status, and BLEU and accuracy of each model; a dry run checks the syntax."""
    folder, script = (setting.output / "demo").resolve(), str(ROOT / "scripts" / "demo.sh")
    call = ["bash", "-n", script] if setting.dry else ["timeout", str(DEMO_SECONDS), "bash", script, str(folder)]
    environment, begin = {**os.environ, "OMP_NUM_THREADS": "1"}, time.monotonic()
    done = subprocess.run(call, env=environment, check=False, capture_output=True, text=True)
    if setting.dry:
        return {"exit": done.returncode}
    results = Path(folder, "report", "results.json")
    if not results.exists():
        raise RuntimeError((done.stdout + done.stderr)[-3000:])
    found: Figures = {"seconds": time.monotonic() - begin, "exit": done.returncode}
    for name, system in json.loads(results.read_text(encoding="utf-8"))["systems"].items():
        found[f"{name}: BLEU"] = system["scores"]["bleu"]
        found[f"{name}: accuracy"] = system["phenomena"]["overall"]["accuracy"]
    return found

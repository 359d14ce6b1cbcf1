"""Stage ``tests``: the tests that only a GPU runs, and the kernels' memory accesses under NVIDIA's checker."""

import importlib.util
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Iterator, List

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import ROOT

GROUPS = {  # by what a file or a test is called
    "kernels and mechanisms": "(gpu or cuda) and not every_family",
    "trainings": "every_family and gpu",
}
MOST_SECONDS = 180  # of a group: one that hangs must not take the others' time
MOST_WORKERS = 12  # each with a context of its own on the GPU
CHECKER = "compute-sanitizer"
CHECKED = "tests/context/conditional/check_triton.py::test_output_gradients_and_choice"


@STAGES.register("tests")
class Tests(Stage):
    """Runs pytest, once a group of tests, slow ones too."""

    minutes = 5.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        for group, words in GROUPS.items():
            yield group, lambda words=words: tested(words, setting)
        if shutil.which(CHECKER) is not None:
            yield CHECKER, checked


def files_of_gpus() -> List[str]:
    """The test files that speak of GPUs: no others need to be collected."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "cuda" in path.read_text(encoding="utf-8")]


def workers() -> List[str]:
    """pytest's options for several processes, where its plugin is there and the machine has the cores."""
    count = min(MOST_WORKERS, os.cpu_count() or 1)
    return ["-n", str(count)] if count > 1 and importlib.util.find_spec("xdist") is not None else []


def tested(words: str, setting: Setting) -> Figures:
    """Returns how many tests passed, failed and were skipped, and what failed, with the end of what was said of it.

    Args:
        words: of pytest's ``-k``.
        setting: where; a dry run collects only.
    """
    path = setting.output / "pytest.xml"
    path.unlink(missing_ok=True)
    call = ["timeout", str(MOST_SECONDS), sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    call += ["-m", "slow or not slow", "-k", words]
    call += ["--collect-only"] if setting.dry else ["--junitxml", str(path), *workers()]
    given = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*call, *files_of_gpus()], cwd=ROOT, capture_output=True, text=True, check=False, env=given)
    if setting.dry:
        return {"exit": done.returncode, "collected": sum("::" in line for line in done.stdout.splitlines())}
    if not path.exists():
        raise RuntimeError(f"pytest wrote no report: {(done.stdout + done.stderr)[-2000:]}")
    return summed_up(path)


def summed_up(path: Path) -> Figures:
    """What pytest's XML report says, in numbers, and each failure by its name."""
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    failures = {}
    for case in cases:
        trouble = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
        if trouble is not None:
            failures[f"{case.get('classname')}::{case.get('name')}"] = (trouble.text or "")[-3000:]
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - len(failures) - skipped
    return {"passed": passed, "failed": len(failures), "skipped": skipped, "failures": failures}


def checked() -> Figures:
    """Returns how many errors NVIDIA's checker of memory accesses finds in the kernels' forward and backward pass."""
    call = ["timeout", str(MOST_SECONDS), CHECKER, "--tool", "memcheck"]
    call += [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", CHECKED]
    given = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False, env=given)
    said = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR SUMMARY" in line]
    if not said or " passed" not in done.stdout:
        raise RuntimeError((done.stdout + done.stderr)[-3000:])
    return {"errors": int(said[-1].split("ERROR SUMMARY:")[1].split()[0])}

"""Stage ``tests``: the tests that only a GPU runs, and those that a GPU may answer otherwise."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from typing import Iterator

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import ROOT

GROUPS = {  # by what a file or a test is called
    "gpu": "cuda or gpu or triton",
    "kernels": "kernel and not cuda and not triton",
    "half precision": "half or bf16 or fp16",
}


@STAGES.register("tests")
class Tests(Stage):
    """Runs pytest, once a group of tests."""

    minutes = 5.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        for group, words in GROUPS.items():
            yield group, lambda words=words: tested(words, setting)


def tested(words: str, setting: Setting) -> Figures:
    """Returns how many tests passed, failed and were skipped, and the names of those that failed.

    Args:
        words: of pytest's ``-k``.
        setting: where; a dry run collects only.
    """
    path = setting.output / "pytest.xml"
    path.unlink(missing_ok=True)
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", words, "--junitxml", str(path)]
    call += ["--collect-only"] if setting.dry else []
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    if setting.dry:
        return {"exit": done.returncode, "collected": sum("::" in line for line in done.stdout.splitlines())}
    if not path.exists():
        raise RuntimeError(f"pytest wrote no report: {(done.stdout + done.stderr)[-2000:]}")
    cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    names = [f"{case.get('classname')}::{case.get('name')}" for case in bad]
    return {"passed": len(cases) - len(bad) - skipped, "failed": len(bad), "skipped": skipped, "failures": names}

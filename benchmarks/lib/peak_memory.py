"""Peak memory of one step, measured in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

from benchmarks.lib.machine import KEEPING, ROOT


def _status(field: str) -> int:
    """Returns a size of this process in bytes, VmRSS or VmHWM."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def print_peak(call: Callable[[], object]) -> None:
    """Prints the bytes that a call needs at most beyond what was there before it (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM starts anew
    before = _status("VmRSS")
    call()
    print(_status("VmHWM") - before)


def peak_of(module: str, *arguments: object) -> int:
    """Runs a module that calls :func:`print_peak` and returns the bytes it printed."""
    own = [sys.executable, "-m", module, *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name not in KEEPING}
    return int(subprocess.run(own, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT).stdout)

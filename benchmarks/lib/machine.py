"""What every benchmark says about where its numbers come from."""

import datetime
import json
import logging
import os
import platform
import shlex
import sys
import time
from pathlib import Path
from typing import Any, List, Optional

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"


def processor() -> str:
    """Returns the model of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> str:
    """Returns one line: processor, cores, versions, date."""
    import numpy
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}, NumPy {numpy.__version__}"
    return f"{processor()}, {cores} cores; {versions}; {datetime.date.today().isoformat()}"


def _own_time() -> bool:
    import torch

    return torch.get_num_threads() == 1 and not torch.cuda.is_initialized()


def clock() -> float:
    """Returns seconds: this process's own where it computes on one thread of a CPU, else of the wall.

    Its own time hardly depends on what else the machine does.
    """
    return time.process_time() if _own_time() else time.perf_counter()


def threads() -> str:
    """Returns how many threads PyTorch has, and what :func:`clock` measures."""
    import torch

    number = torch.get_num_threads()
    return "PyTorch on one thread, times its own CPU time" if _own_time() else f"PyTorch on {number} threads, wall time"


def _script() -> List[str]:
    """How this process was started: the module as ``python -m`` takes it, or the file."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["python", os.path.relpath(sys.argv[0])] if spec is None else ["python", "-m", spec.name]


OWN_FOLDERS = ("--work", "--results", "--begin-from")


def call(raw: Optional[Path]) -> str:
    """Returns this process's command line as anybody would give it: without folders of its own, text at path/to."""
    words, own = [], iter(sys.argv[1:])
    for word in own:
        if word in OWN_FOLDERS:
            next(own)
        else:
            words.append(f"path/to/{raw.name}" if raw and word == str(raw) else word)
    return shlex.join([*_script(), *words])


def command() -> str:
    """Returns this process's command line, paths relative to the working folder."""
    words = [os.path.relpath(word) if os.path.isabs(word) else word for word in sys.argv[1:]]
    return shlex.join([*_script(), *words])


KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}  # of glibc's malloc


def keep_freed_memory() -> None:
    """Starts this process anew with an allocator that keeps what is freed, as those of GPUs do.

    Else every tensor of 32 MB or more is new memory from the system, which clears each page of it: that takes longer
    than a layer's arithmetic, from some size on, and by steps.
    """
    if not KEEPING.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **KEEPING})


def table(header: list, rows: list, numbers: bool = True) -> str:
    """Returns a Markdown table; numbers, which are to be formatted already, stand at the right of their columns."""
    lines = [header, ["---", *["---:" if numbers else "---"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def write(name: str, text: str, results: Optional[Path] = None) -> None:
    """Prints a report and writes it to the folder of results, or another."""
    print(text)
    folder = results or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def write_figures(name: str, figures: dict, results: Optional[Path] = None) -> None:
    """Writes what a report is made from to the folder of results, or another, as JSON."""
    folder = results or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def begin(threads: Optional[int] = None) -> None:
    """Silences what libraries tell, and sets PyTorch's threads if a number is given."""
    import torch

    logging.disable(logging.INFO)
    if threads:
        torch.set_num_threads(threads)


def publish(name: str, text: str, **figures: Any) -> None:
    """Writes a report, and its figures with how they came about."""
    import torch

    write(f"{name}.md", text)
    facts = {"command": command(), "machine": machine(), "threads": torch.get_num_threads()}
    write_figures(f"{name}.json", {**facts, **figures})

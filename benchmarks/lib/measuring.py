"""Measurements: time, peak memory, rounds by turns; and the command line of speed benchmarks."""

import argparse
import importlib
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from benchmarks.lib.reporting import RESULTS, ROOT, command, machine, write, write_json

ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}  # glibc: keep freed memory


def clock() -> float:
    """Returns CPU seconds of this process if it computes on one CPU thread, otherwise wall-clock seconds."""
    return time.process_time() if _single_threaded() else time.perf_counter()


def _single_threaded() -> bool:
    return torch.get_num_threads() == 1 and not torch.cuda.is_initialized()


def threads() -> str:
    """Returns the number of threads and what :func:`clock` measures."""
    return "one thread, CPU time" if _single_threaded() else f"{torch.get_num_threads()} threads, wall-clock time"


def keep_freed_memory() -> None:
    """Restarts this process with an allocator that keeps freed memory, as GPU allocators do.

    Otherwise every tensor of 32 MB or more is mapped anew, and clearing its pages takes longer than the arithmetic.
    """
    if not ALLOCATOR.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ALLOCATOR})


def print_peak(call: Callable[[], object]) -> None:
    """Prints the peak memory of a call in bytes, beyond what the process held before (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM
    before = _status("VmRSS")
    call()
    print(_status("VmHWM") - before)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def child_output(module: str, *arguments: object) -> str:
    """Runs a module in a new process and returns the last line that it prints."""
    words = [sys.executable, "-m", module, *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name not in ALLOCATOR}
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    return done.stdout.splitlines()[-1]


def peak_of(module: str, *arguments: object) -> int:
    """Returns the bytes that a module prints with :func:`print_peak` in a new process."""
    return int(child_output(module, *arguments))


def by_turns(calls: Mapping[str, Callable[[], Any]], rounds: int, warmup: int = 1) -> dict[str, list]:
    """Calls every function once per round and returns the results of all rounds after the warm-up, by name."""
    found: dict[str, list] = {name: [] for name in calls}
    for number in tqdm(range(warmup + rounds), desc="rounds", disable=None):
        for name, call in calls.items():
            result = call()
            if number >= warmup:
                found[name].append(result)
    return found


def seconds_of(call: Callable[[], object]) -> float:
    """Returns the seconds that a call takes."""
    start = clock()
    call()
    return clock() - start


def ratio(rounds: Mapping[str, list[float]], name: str, baseline: str) -> tuple[float, float, float]:
    """Returns median, minimum and maximum over rounds of a value divided by the baseline's."""
    ratios = [own / other for own, other in zip(rounds[name], rounds[baseline])]
    return statistics.median(ratios), min(ratios), max(ratios)


def shown_ratio(values: tuple[float, float, float] | list[float]) -> str:
    """Returns a median with its range."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*values)


def run_benchmark(name: str, argv: list[str] | None = None) -> None:
    """Runs a benchmark module and writes its report and figures.

    The module defines ``TITLE``, ``add_options(parser)``, ``measure(args)``, which returns figures for JSON, and
    ``report(args, figures)``, which returns paragraphs. Optional: ``child(args)`` handles a new process started by the
    benchmark (``--child``); ``prepare(args)`` runs before all.

    Args:
        name: module.
        argv: arguments; None: of this process. Options that the parser does not know are kept in ``args.more``.
    """
    module = importlib.import_module(name)
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--threads", type=int, help="threads of PyTorch (default: PyTorch's)")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    module.add_options(parser)
    args, args.more = parser.parse_known_args(argv)
    logging.disable(logging.INFO)
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.child:
        module.child(args)
        return
    if hasattr(module, "prepare"):
        module.prepare(args)
    figures = module.measure(args)
    result = getattr(args, "result_name", name.rpartition(".")[2])
    facts = {"command": command(), "machine": machine(), "threads": torch.get_num_threads()}
    write_json(result, {**facts, **figures}, args.results)
    title = getattr(args, "title", module.TITLE)
    header = [f"# {title}", f"`{facts['command']}`  \n{facts['machine']}; {threads()}"]
    paragraphs = [*header, *module.report(args, figures)]
    write(result, paragraphs, args.results)

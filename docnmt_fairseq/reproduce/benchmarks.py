"""Benchmarks of the repository whose figures stand in published tables."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import docnmt_fairseq
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.result_files import read_json

ROOT = Path(docnmt_fairseq.__file__).parents[1]


def figures_of(benchmark: str, folder: Path, *options: object) -> Any:
    """Runs a benchmark, and returns what is in its file of figures.

    Args:
        benchmark: the module; its last name is that of its results.
        folder: where it writes them.
        options: of it.

    Raises:
        InputError: it is not there, or failed.
    """
    if not (ROOT / benchmark.replace(".", "/")).with_suffix(".py").is_file():
        raise InputError(f"{benchmark} is not in the installed package: run this in a checkout of the repository")
    command = [sys.executable, "-m", benchmark, "--results", str(folder.absolute()), *map(str, options)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise InputError(f"{benchmark} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    return read_json(folder / f"{benchmark.rpartition('.')[2]}.json")

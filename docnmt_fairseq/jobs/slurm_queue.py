"""What Slurm is asked: to take arrays, how large they may be, and what of them is in its queue."""

import logging
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Optional, Set

from docnmt_fairseq.errors import InputError

POLL = 10.0  # seconds between two looks at the queue
GONE = "invalid job id"  # what squeue says of jobs that ended a while ago
ARRAY_SIZE = 1001  # tasks of an array at most, where Slurm does not say; its own default of MaxArraySize

logger = logging.getLogger(__name__)


def has_slurm() -> bool:
    """Whether arrays can be submitted here."""
    return shutil.which("sbatch") is not None


def most_tasks() -> int:
    """How many tasks an array may have."""
    if shutil.which("scontrol") is None:
        return ARRAY_SIZE
    result = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True)
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", result.stdout, re.MULTILINE)
    return max(int(found[1]), 1) if found else ARRAY_SIZE


def submit(script: Path, after: Optional[str] = None) -> str:
    """Submits an array; its number.

    Args:
        script: its script.
        after: the array at whose end it may begin.

    Raises:
        InputError: Slurm refuses it.
    """
    options = [] if after is None else [f"--dependency=afterany:{after}"]
    # It inherits the lock of the folder: if this process is killed, the next one looks when this has been submitted.
    command = ["sbatch", "--parsable", *options, str(script)]
    result = subprocess.run(command, capture_output=True, text=True, close_fds=False)
    if result.returncode:
        raise InputError(f"--engine slurm: sbatch refuses {script}: {result.stderr.strip()}")
    number = result.stdout.strip().split(";")[0]
    logger.info(f"array {number}: {script}")
    return number


def queued(array: str) -> Set[int]:
    """The numbers of the tasks of an array that wait or run."""
    numbers = _squeue("--array", "--jobs", array, "--format", "%K").split()
    return {int(number) for number in numbers if number.isdigit()}


def number_of(script: Path) -> Optional[str]:
    """The number of the array of a script; None: no task of it waits or runs."""
    for line in _squeue("--user", str(os.getuid()), "--format", "%F %o").splitlines():
        number, _, command = line.strip().partition(" ")
        if script.name in command:
            return number
    return None


def _squeue(*options: str) -> str:
    """What the queue answers; where it does not, it is asked again."""
    while True:
        result = subprocess.run(["squeue", "--noheader", *options], capture_output=True, text=True)
        if not result.returncode:
            return result.stdout
        if GONE in result.stderr.lower():
            return ""
        logger.warning(f"squeue: {result.stderr.strip()}; asked again in {POLL:g} s")
        time.sleep(POLL)

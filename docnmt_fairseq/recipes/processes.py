"""Runs fairseq's commands as processes of their own: none outlives the recipe, no two recipes share a folder."""

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Iterator, List, Optional, TextIO

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.lifetime import end_with_parent

PATIENCE = 30.0  # seconds that a process of a killed recipe has to end
_running: List[subprocess.Popen[bytes]] = []

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, which ends with the process, however that ends.

    Raises:
        InputError: another recipe is at work there.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "a+", encoding="utf-8") as lock:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise InputError(f"--output {folder}: another recipe is at work there") from None
                time.sleep(0.2)
        os.set_inheritable(lock.fileno(), True)  # what a killed recipe leaves behind holds the lock until it ends
        yield


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Ends at once on SIGTERM and SIGINT, running commands first.

    No exception is raised: raised inside a callback or a destructor it would be lost, and the recipe go on. Every step
    can be killed anyway.
    """

    def end(number: int, frame: Optional[FrameType]) -> None:
        for process in _running:
            process.terminate()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, 0)  # not process.wait(): the interrupted one holds its lock
        os._exit(128 + number)

    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, end) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before):
            signal.signal(number, handler)


def fairseq(command: str, processes: int = 1) -> List[str]:
    """Returns the beginning of a command line: ``train``, ``generate``, … as several processes where asked for."""
    if processes == 1:
        return [sys.executable, "-m", f"fairseq_cli.{command}"]
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    return [*together, "-m", f"fairseq_cli.{command}"]


def run(command: List[str], output: TextIO, log: Path, errors: Optional[TextIO] = None) -> None:
    """Runs a command to its end.

    Args:
        command: what to run.
        output: takes what it prints.
        log: where its errors are found, for messages.
        errors: takes its standard error; None: as ``output``.

    Raises:
        InputError: it failed; shows the end of the log.
    """
    logger.info(shlex.join(command))
    process = subprocess.Popen(
        command, stdout=output, stderr=errors or subprocess.STDOUT, close_fds=False, preexec_fn=end_with_parent
    )
    _running.append(process)
    status = process.wait()
    _running.remove(process)
    if status:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
        raise InputError(f"fairseq ended with status {status}; {log} ends with\n{last}")

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
from typing import Callable, ContextManager, Iterator, List, Optional, Sequence, TextIO

import docnmt_fairseq
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.lifetime import end_with_parent
from docnmt_fairseq.locks import holding, in_folder

PLUGIN = Path(docnmt_fairseq.__file__).parent
POLL = 0.5  # seconds between two looks at what runs
CAUSE = 3.0  # seconds that the machine which failed has to say so, where others fail for it
PATIENCE = 30.0  # seconds that a process of a killed recipe has to end
_running: List[subprocess.Popen[bytes]] = []

logger = logging.getLogger(__name__)


def alone_in(folder: Path) -> ContextManager[None]:
    """Holds the folder's lock, which what a killed recipe leaves behind also holds until it ends.

    Raises:
        InputError: another recipe is at work there.
    """
    return holding(in_folder(folder), f"--output {folder}", patience=PATIENCE)


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


def fairseq(command: str, processes: int = 1, together: Optional[Sequence[str]] = None) -> List[str]:
    """The beginning of a command line: ``train``, ``generate``, … as one process, or as several of torchrun.

    Args:
        command: of fairseq.
        processes: of this machine.
        together: options of torchrun about all machines; None: without it.
    """
    program = ["-m", f"fairseq_cli.{command}"]
    if together is None:
        return [sys.executable, *program]
    return [sys.executable, "-m", "docnmt_fairseq.torchrun", *together, "--nproc_per_node", str(processes), *program]


def run(
    command: List[str],
    output: TextIO,
    log: Path,
    errors: Optional[TextIO] = None,
    check: Optional[Callable[[], object]] = None,
) -> None:
    """Runs a command to its end.

    Args:
        command: what to run.
        output: takes what it prints.
        log: where its errors are found, for messages.
        errors: takes its standard error; None: as ``output``.
        check: is called now and then; its errors end the command.

    Raises:
        InputError: it failed; shows the end of the log.
    """
    logger.info(shlex.join(command))
    process = subprocess.Popen(
        command, stdout=output, stderr=errors or subprocess.STDOUT, close_fds=False, preexec_fn=end_with_parent
    )
    _running.append(process)
    try:
        status = _wait(process, check)
    finally:
        _running.remove(process)
    if status:
        until = time.monotonic() + CAUSE
        while check is not None and time.monotonic() < until:
            check()
            time.sleep(POLL)
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
        raise InputError(f"fairseq ended with status {status}; {log} ends with\n{last}")


def _wait(process: "subprocess.Popen[bytes]", check: Optional[Callable[[], object]]) -> int:
    """The status of a process that has ended."""
    if check is None:
        return process.wait()
    while True:
        try:
            return process.wait(POLL)
        except subprocess.TimeoutExpired:
            pass
        try:
            check()
        except InputError:
            process.terminate()
            process.wait()
            raise

"""Processes that tests start and kill."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path


@contextlib.contextmanager
def forked(action):
    """Runs it in a process of its own, which is killed in the end; gives its number."""
    pid = os.fork()
    if not pid:
        try:
            action()
        finally:
            os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def started(*command):
    """Runs a command, which is killed in the end; gives its number.

    What has computed with PyTorch cannot be forked: threads that it has are not there, and what they held is held.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def children(pid):
    """Returns the processes that a process has started."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def alive(pid):
    """Returns whether a process is there and has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_for(condition, seconds=180.0):
    """Waits until a condition holds; errors of files that do not exist yet count as not."""
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, ValueError):
            if condition():
                return
        assert time.monotonic() < until, "timed out"
        time.sleep(0.05)

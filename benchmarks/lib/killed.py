"""Actions in processes of their own, one process of which is killed at a moment."""

import contextlib
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, List, Optional

FEW = 0.002  # seconds between two looks
GRACE = 20.0  # seconds that processes have to end after the one that started them


@dataclass(frozen=True)
class Outcome:
    """What became of an action.

    Attributes:
        status: its exit status, negative: the signal that ended it; None: it did not end and was stopped.
        killed: what was killed, "itself" or "a child"; "": nothing, it had ended before.
        left: processes that went on when it had ended.
        seconds: that it took.
    """

    status: Optional[int]
    killed: str
    left: int
    seconds: float


def run(
    action: Callable[[], Any],
    log: Path,
    limit: float,
    after: Optional[float] = None,
    chance: Optional[random.Random] = None,
    children: bool = False,
) -> Outcome:
    """Runs an action in a forked process, of which this one's imports are those already, and waits for its end.

    Args:
        action: what it gives back is the exit status, None stands for 0.
        log: where its output goes.
        limit: seconds after which it is stopped.
        after: seconds after which SIGKILL goes to one of its processes; None: to none.
        chance: chooses which.
        children: never the first of them, which is waited for to have others.
    """
    pid = os.fork()
    if not pid:
        _child(action, log)
    start, killed, status = time.monotonic(), "", None
    while time.monotonic() - start < limit:
        found, code = os.waitpid(pid, os.WNOHANG)
        if found:
            status = os.waitstatus_to_exitcode(code)
            break
        if after is not None and not killed and time.monotonic() - start >= after:
            victims = processes_of(pid) or [pid]  # at first it has no session of its own
            victims = [victim for victim in victims if victim != pid] if children else victims
            if victims:
                victim = (chance or random).choice(victims)
                killed = "itself" if victim == pid else "a child"
                _kill(victim)
        time.sleep(FEW)
    seconds = time.monotonic() - start
    left = _left(pid, GRACE if status is not None else 0)
    for other in processes_of(pid):
        _kill(other)
    if status is None:
        os.waitpid(pid, 0)
    return Outcome(status, killed, left, seconds)


def _child(action: Callable[[], Any], log: Path) -> None:
    status = 1
    try:
        os.setsid()
        stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for number in (1, 2):
            os.dup2(stream, number)
        sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
        status = action() or 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def processes_of(session: int) -> List[int]:
    """Returns the processes of a session that have not ended, and those that they started, in whatever session."""
    parents, found = {}, set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = (
                    Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                )
            except OSError:  # it has ended meanwhile
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
                found |= {int(entry.name)} if int(fields[3]) == session else set()
    while more := {child for child, parent in parents.items() if parent in found and child not in found}:
        found |= more
    return sorted(found)


def _left(session: int, grace: float) -> int:
    """Returns how many processes of a session do not end by themselves."""
    end = time.monotonic() + grace
    while processes_of(session) and time.monotonic() < end:
        time.sleep(0.02)
    return len(processes_of(session))


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)

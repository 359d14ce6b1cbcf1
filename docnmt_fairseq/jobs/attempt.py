"""One try of a job on this machine; every engine's jobs end up here."""

import os
import shlex
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Mapping, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.workplace import DONE, FAILED, RUNNING, WAITING, Record, Workplace
from docnmt_fairseq.lifetime import end_with_parent

PATIENCE = 20.0  # seconds that a job that is asked to end has for it
TAIL = 2**14  # bytes of a log in which its last line is looked for


class Attempt:
    """A process that runs a job, and ends with this one.

    Args:
        job: what to run.
        place: where and how.
        environment: variables that it gets beside those of this process.

    Raises:
        InputError: its record or its log cannot be written.
    """

    def __init__(self, job: Job, place: Workplace, environment: Mapping[str, str]):
        self.job, self.place = job, place
        self.record = Record(RUNNING, place.read(job).tries + 1, host=socket.gethostname())
        self._stopped = False
        place.write(job, self.record)
        log = place.log(job)
        command = [*place.program, *job.arguments]
        told = f"# try {self.record.tries} on {self.record.host}, {time.strftime('%F %T')}: {shlex.join(command)}\n"
        self._begin, self._log = _append(log, told.encode()), log
        with open(log, "ab") as stream:
            self._since = time.monotonic()
            self._process = subprocess.Popen(
                command, cwd=place.directory, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                stdout=stream, stderr=subprocess.STDOUT, close_fds=False, preexec_fn=end_with_parent,
            )  # fmt: skip

    def poll(self) -> Optional[bool]:
        """Whether it succeeded; None while it runs."""
        status = self._process.poll()
        return None if status is None else self._ended(status)

    def wait(self) -> bool:
        """Waits for its end; whether it succeeded."""
        return self._ended(self._process.wait())

    def stop(self) -> None:
        """Ends it before its time: it counts as not tried."""
        self._stopped = True
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if not self.place.is_done(self.job):
            self.record.state, self.record.tries = WAITING, self.record.tries - 1
            with suppress(InputError):  # a full disk is why it is stopped; others are still to be
                self.place.write(self.job, self.record)

    def _ended(self, status: int) -> bool:
        done = status == 0 and self.place.is_done(self.job)
        if not self._stopped:
            self.record.state = DONE if done else FAILED
            self.record.seconds = round(time.monotonic() - self._since, 3)
            self.record.message = "" if done else self._message(status)
            self.place.write(self.job, self.record)
        return done

    def _message(self, status: int) -> str:
        if status < 0:
            names = {int(one): one.name for one in signal.Signals}  # not those between SIGRTMIN and SIGRTMAX
            return f"killed by {names.get(-status, f'signal {-status}')}"
        if status == 0:
            return f"ended without {self.job.done}"
        return _last_line(self._log, self._begin) or f"ended with status {status}"


def _append(log: Path, told: bytes) -> int:
    """Writes the head of a try; the place behind it.

    Raises:
        InputError: it cannot be written.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as stream:
            stream.write(told)
            stream.flush()
            return stream.tell()
    except OSError as error:
        raise InputError(f"{log}: cannot be written: {error.strerror}") from error


def _last_line(log: Path, begin: int) -> str:
    """The last line of a log behind some place that is not empty."""
    with open(log, "rb") as stream:
        stream.seek(max(begin, stream.seek(0, os.SEEK_END) - TAIL))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")

"""Engine ``slurm``: an array of Slurm, a task a job, submitted with ``sbatch`` and waited for with ``squeue``.

The array outlives the command that submitted it: the same command waits for it again. Tasks that fail are submitted
again, as a new array; one that is near its time limit, or preempted, goes back into the queue by itself.
"""

import json
import logging
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Generator, Iterator, List, Optional, Sequence, Set

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs.engines.base import ENGINES, Engine, EngineOptions
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.slurm_script import array_script, write_tasks
from docnmt_fairseq.jobs.workplace import RUNNING, Workplace
from docnmt_fairseq.options import option
from docnmt_fairseq.plain_json import parse_json

POLL = 10.0  # seconds between two looks at the queue
SETTLE = 10.0  # seconds until what one machine wrote is seen by another
GONE = "invalid job id"  # what squeue says of jobs that ended a while ago

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SlurmOptions(EngineOptions):
    """The options of Slurm."""

    slurm_time: Optional[str] = option(None, "time limit of a job, as of sbatch --time", metavar="TIME")
    slurm_partition: Optional[str] = option(None, "partition of jobs", metavar="NAME")
    slurm_memory: Optional[str] = option(None, "memory of a job, as of sbatch --mem", metavar="SIZE")
    slurm_options: List[str] = option(list, "more options of sbatch, as name=value, e.g. account=nmt", metavar="OPTION")
    slurm_setup: Optional[str] = option(
        None, "shell commands before each job, e.g. 'module load cuda'", metavar="COMMANDS"
    )  # fmt: skip
    dry_run: bool = option(False, "write what would be submitted, and stop")


@ENGINES.register("slurm")
class Slurm(Engine):
    """Tasks of an array of Slurm."""

    help = "as an array of Slurm"
    Options = SlurmOptions
    options: SlurmOptions

    @property
    def only_prepares(self) -> bool:
        """See :class:`Engine`."""
        return self.options.dry_run

    def run(self, jobs: Sequence[Job], place: Workplace, tries: int) -> Generator[Job, None, None]:
        """See :class:`Engine`.

        Raises:
            InputError: Slurm is not there, or refuses the array; what it would be given is written all the same.
        """
        waiting = list(jobs)
        submitted = _Array.read(place) if _has_slurm() else None
        if submitted is not None:
            logger.info(f"array {submitted.id}, submitted before: waiting for it")
            yield from self._wait(submitted, waiting)
            waiting = [job for job in waiting if not place.is_done(job)]
        for _ in range(tries):
            if not waiting:
                return
            script = self._write(waiting, place)
            if self.only_prepares:
                logger.info(f"--dry-run: nothing is submitted; sbatch {shlex.quote(str(script))} would do it")
                return
            if not _has_slurm():
                raise InputError(
                    f"--engine slurm: there is no sbatch here; {script} is written: submit it where Slurm is with "
                    f"sbatch {shlex.quote(str(script))}, and give the same command again when it has ended"
                )
            array = _Array(_submit(script), [job.name for job in waiting], place)
            array.write()
            yield from self._wait(array, waiting)
            waiting = [job for job in waiting if not place.is_done(job)]

    def _write(self, jobs: Sequence[Job], place: Workplace) -> Path:
        own = self.options
        directives = {
            "time": own.slurm_time,
            "partition": own.slurm_partition,
            "mem": own.slurm_memory,
            "cpus-per-task": str(own.job_threads or 1),
            "gpus": str(own.job_gpus) if own.job_gpus else None,
        }
        given = [f"{name}={value}" for name, value in directives.items() if value is not None]
        tasks = write_tasks(jobs, place)
        text = array_script(tasks, len(jobs), place, self.workers, [*given, *own.slurm_options], own.slurm_setup)
        script = tasks.with_suffix(".sh")
        atomic_write_bytes(script, text.encode())
        return script

    def _wait(self, array: "_Array", jobs: Sequence[Job]) -> Iterator[Job]:
        """Waits until nothing of an array is in the queue."""
        by_name = {job.name: job for job in jobs}
        left = [name for name in array.names if name in by_name]
        try:
            while left:
                queued = _queued(array.id)
                gone = [name for number, name in enumerate(array.names) if name in left and number not in queued]
                _settle([by_name[name] for name in gone], array.place)
                for name in gone:
                    left.remove(name)
                    yield by_name[name]
                if left:
                    time.sleep(POLL)
        except KeyboardInterrupt:
            logger.info(f"array {array.id} goes on; scancel {array.id} ends it, the same command waits for it again")
            raise
        array.forget()


class _Array:
    """An array that was submitted, as the folder of the work remembers it.

    Args:
        id: Slurm's number.
        names: of the jobs, in the order of the tasks.
        place: the folder.
    """

    def __init__(self, id: str, names: List[str], place: Workplace):
        self.id, self.names, self.place, self._path = id, names, place, place.folder / "slurm" / "array.json"

    @classmethod
    def read(cls, place: Workplace) -> "Optional[_Array]":
        """The one that was submitted and not yet seen to end."""
        try:
            found = parse_json((place.folder / "slurm" / "array.json").read_bytes())
        except (OSError, ValueError):
            return None
        return cls(found["id"], found["names"], place)

    def write(self) -> None:
        """Remembers it."""
        atomic_write_bytes(self._path, json.dumps({"id": self.id, "names": self.names}).encode())

    def forget(self) -> None:
        """It has ended."""
        self._path.unlink(missing_ok=True)


def _settle(ended: Sequence[Job], place: Workplace) -> None:
    """Waits a while for what ended tasks wrote, which other machines may see later."""
    until = time.monotonic() + SETTLE
    while time.monotonic() < until and any(place.read(job).state == RUNNING for job in ended):
        time.sleep(SETTLE / 10)


def _has_slurm() -> bool:
    return shutil.which("sbatch") is not None


def _submit(script: Path) -> str:
    """Submits an array; its number."""
    result = subprocess.run(["sbatch", "--parsable", str(script)], capture_output=True, text=True)
    if result.returncode:
        raise InputError(f"--engine slurm: sbatch refuses {script}: {result.stderr.strip()}")
    number = result.stdout.strip().split(";")[0]
    logger.info(f"array {number}: {script}")
    return number


def _queued(array: str) -> Set[int]:
    """The numbers of the tasks of an array that wait or run; where the queue does not answer, it is asked again."""
    while True:
        command = ["squeue", "--noheader", "--array", "--jobs", array, "--format", "%K"]
        result = subprocess.run(command, capture_output=True, text=True)
        if not result.returncode:
            return {int(number) for number in result.stdout.split() if number.isdigit()}
        if GONE in result.stderr.lower():
            return set()
        logger.warning(f"squeue: {result.stderr.strip()}; asked again in {POLL:g} s")
        time.sleep(POLL)

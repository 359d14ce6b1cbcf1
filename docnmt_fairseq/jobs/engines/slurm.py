"""Engine ``slurm``: arrays of Slurm, a task a job, submitted with ``sbatch`` and waited for with ``squeue``.

There is one, or as many as Slurm's limit to the size of one makes necessary. They outlive the command that submitted
them: the same command waits for them again. Tasks that fail are submitted
again, as new arrays; one that is near its time limit, or preempted, goes back into the queue by itself.
"""

import logging
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Generator, Iterator, List, Optional, Sequence

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import slurm_queue
from docnmt_fairseq.jobs.engines.base import ENGINES, Engine, EngineOptions
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.slurm_arrays import Array, forget, submit_all, submitted
from docnmt_fairseq.jobs.slurm_script import array_script, write_tasks
from docnmt_fairseq.jobs.workplace import RUNNING, Workplace
from docnmt_fairseq.options import option

SETTLE = 10.0  # seconds until what one machine wrote is seen by another

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
        before = submitted(place) if slurm_queue.has_slurm() else []
        if before:
            logger.info(f"array {_ids(before)}, submitted before: waiting for it")
            yield from self._wait(before, waiting, place)
            waiting = [job for job in waiting if not place.is_done(job)]
        for _ in range(tries):
            if not waiting:
                return
            arrays = self._write(waiting, place)
            command = "; ".join(f"sbatch {shlex.quote(array.script)}" for array in arrays)
            if self.only_prepares:
                logger.info(f"--dry-run: nothing is submitted; {command} would do it")
                return
            if not slurm_queue.has_slurm():
                scripts = " ".join(array.script for array in arrays)
                raise InputError(
                    f"--engine slurm: there is no sbatch here; {scripts} is written: submit it where Slurm is "
                    f"with {command}, and give the same command again when it has ended"
                )
            submit_all(arrays, place, one_by_one=self.workers is not None)  # each would run as many at once
            yield from self._wait(arrays, waiting, place)
            waiting = [job for job in waiting if not place.is_done(job)]

    def _write(self, jobs: Sequence[Job], place: Workplace) -> List[Array]:
        """Writes scripts of as many arrays as the jobs need."""
        most = slurm_queue.most_tasks()
        parts = [jobs[begin : begin + most] for begin in range(0, len(jobs), most)]
        return [Array(str(self._script(part, place)), [job.name for job in part]) for part in parts]

    def _script(self, jobs: Sequence[Job], place: Workplace) -> Path:
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

    def _wait(self, arrays: Sequence[Array], jobs: Sequence[Job], place: Workplace) -> Iterator[Job]:
        """Waits until nothing of some arrays is in the queue."""
        by_name = {job.name: job for job in jobs}
        left = {
            (str(array.id), number): by_name[name]
            for array in arrays for number, name in enumerate(array.names) if name in by_name
        }  # fmt: skip
        try:
            while left:
                queued = {(id, number) for id in {id for id, _ in left} for number in slurm_queue.queued(id)}
                gone = [left.pop(task) for task in list(left) if task not in queued]
                _settle(gone, place)
                yield from gone
                if left:
                    time.sleep(slurm_queue.POLL)
        except KeyboardInterrupt:
            ids = _ids(arrays)
            logger.info(f"array {ids} goes on; scancel {ids} ends it, the same command waits for it again")
            raise
        forget(place)


def _ids(arrays: Sequence[Array]) -> str:
    return " ".join(str(array.id) for array in arrays)


def _settle(ended: Sequence[Job], place: Workplace) -> None:
    """Waits a while for what ended tasks wrote, which other machines may see later."""
    until = time.monotonic() + SETTLE
    while time.monotonic() < until and any(place.read(job).state == RUNNING for job in ended):
        time.sleep(SETTLE / 10)

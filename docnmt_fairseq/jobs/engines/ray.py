"""Engine ``ray``: tasks of a Ray cluster, or of a Ray that is started on this machine for them.

Where and when a task runs, and that one is tried again whose machine is lost, is Ray's business.
"""

import logging
import os
import socket
from dataclasses import dataclass
from typing import Any, Dict, Generator, Iterator, List, Optional, Sequence

from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.jobs.attempt import Attempt
from docnmt_fairseq.jobs.engines.base import ENGINES, THREADS, Engine, EngineOptions
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.workplace import Workplace
from docnmt_fairseq.options import option

SECONDS = 10.0  # for an answer of a cluster


@dataclass(frozen=True)
class RayOptions(EngineOptions):
    """The options of Ray."""

    ray_address: Optional[str] = option(
        None, "of a cluster: auto, HOST:6379, ray://HOST:10001 (default: RAY_ADDRESS, else this machine)",
        metavar="ADDRESS",
    )  # fmt: skip


class JobFailed(Exception):
    """Tells Ray that a try failed; its record says why."""


@ENGINES.register("ray")
class Ray(Engine):
    """Tasks of Ray."""

    help = "on a Ray cluster, or with Ray on this machine"
    Options = RayOptions
    options: RayOptions

    def run(self, jobs: Sequence[Job], place: Workplace, tries: int) -> Generator[Job, None, None]:
        """See :class:`Engine`.

        Raises:
            InputError: Ray is not installed, or there is no cluster.
        """
        ray = self._library()
        own = not ray.is_initialized()
        if own:
            self._connect(ray)
        try:
            yield from self._tasks(ray, jobs, place, tries)
        finally:
            if own:
                ray.shutdown()  # also ends what still runs

    def _tasks(self, ray: Any, jobs: Sequence[Job], place: Workplace, tries: int) -> Iterator[Job]:
        threads = self.options.job_threads or 1
        task = ray.remote(
            num_cpus=threads, num_gpus=self.options.job_gpus, max_retries=tries - 1, retry_exceptions=[JobFailed]
        )(run_one)
        waiting: List[Job] = list(jobs)
        running: Dict[Any, Job] = {}
        while waiting or running:
            while waiting and (self.workers is None or len(running) < self.workers):
                job = waiting.pop(0)
                running[task.remote(job, place, {THREADS: str(threads)})] = job
            ended, _ = ray.wait(list(running))
            for reference in ended:
                job = running.pop(reference)
                try:
                    ray.get(reference)
                except (JobFailed, ray.exceptions.RayError) as error:
                    logging.getLogger(__name__).info(f"{job.name}: {type(error).__name__}")
                yield job

    def _library(self) -> Any:
        try:
            import ray
        except ImportError as error:
            raise InputError("--engine ray: needs pip install 'docnmt_fairseq[ray]'") from error
        return ray

    def _connect(self, ray: Any) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report to its makers
        address = self.options.ray_address
        try:
            _check_port(address)
            ray.init(
                address=address, logging_level=logging.WARNING, log_to_driver=False,
                **({} if address else {"include_dashboard": False}),
            )  # fmt: skip
        except (OSError, ValueError, RuntimeError) as error:
            reason = first_line(error)
            raise InputError(f"--engine ray: none at {address or 'this machine'}: {reason}") from error


def _check_port(address: Optional[str]) -> None:
    """Finds in seconds what Ray would find in minutes: that nobody answers at an address."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=SECONDS).close()


def run_one(job: Job, place: Workplace, environment: Dict[str, str]) -> None:
    """Runs a job on the machine that Ray chose; one that an earlier try finished is left as it is."""
    if not place.is_done(job) and not Attempt(job, place, environment).wait():
        raise JobFailed(job.name)

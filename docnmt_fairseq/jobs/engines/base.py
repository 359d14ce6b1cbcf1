"""The contract of engines, and the registry that commands with ``--engine`` ask for them.

An engine is one class in one file of this folder, registered under its name; importing the folder imports its files, so
they import libraries only where they use them. What it can be told are fields of its ``Options``, each a flag.
"""

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generator, Optional, Sequence, Type

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.workplace import Workplace
from docnmt_fairseq.options import CheckedOptions, option
from docnmt_fairseq.registry import Registry

THREADS = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class EngineOptions(CheckedOptions):
    """What all engines can be told, fields made by :func:`docnmt_fairseq.options.option`.

    Raises:
        InputError: a value that is not allowed.
    """

    job_threads: Optional[int] = option(None, "threads of a job (default: processors shared out, else 1)", minimum=1)
    job_gpus: int = option(0, "GPUs that each job has for itself; 0: they are not shared out", minimum=0)


class Engine(ABC):
    """Contract: ``cls(options, workers)``; runs jobs somewhere, through :class:`~docnmt_fairseq.jobs.attempt.Attempt`.

    Class attributes:
        help: in one line, where jobs run.
        Options: what it can be told.

    Args:
        options: of the class's ``Options``.
        workers: how many jobs run at once at most; None: as many as the machines take.

    Raises:
        InputError: an option out of range.
    """

    help: ClassVar[str]
    Options: ClassVar[Type[EngineOptions]] = EngineOptions

    options: Any

    def __init__(self, options: EngineOptions, workers: Optional[int] = None):
        if workers is not None and workers < 1:
            raise InputError(f"--workers {workers}: at least 1")
        self.options, self.workers = options, workers

    @property
    def only_prepares(self) -> bool:
        """Whether it was asked to run nothing now."""
        return False

    @abstractmethod
    def run(self, jobs: Sequence[Job], place: Workplace, tries: int) -> Generator[Job, None, None]:
        """Runs jobs; when the iterator is closed early, what runs on this machine ends.

        Args:
            jobs: what to run, in this order where the order is free.
            place: where and how.
            tries: how often each is tried at most.

        Yields:
            Each job whose record may have changed, in any order, any number of times.

        Raises:
            InputError: it cannot run here.
        """


def processors() -> int:
    """The processors that this process may use; not every system can say which."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


ENGINES: Registry[Engine] = Registry("engine")

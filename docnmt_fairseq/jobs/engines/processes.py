"""Engine ``processes``: processes of this machine."""

import os
import time
from collections import deque
from typing import Deque, Dict, Generator, List, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs.attempt import Attempt
from docnmt_fairseq.jobs.engines.base import ENGINES, THREADS, Engine, processors
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.workplace import Workplace

PAUSE = 0.05  # seconds between two looks at what runs
VISIBLE = "CUDA_VISIBLE_DEVICES"


@ENGINES.register("processes")
class Processes(Engine):
    """Processes of this machine, which end with the one that started them."""

    help = "on this machine"

    def run(self, jobs: Sequence[Job], place: Workplace, tries: int) -> Generator[Job, None, None]:
        """See :class:`Engine`."""
        waiting: Deque[Tuple[Job, int]] = deque((job, tries) for job in jobs)
        free = self._slots(len(jobs))
        running: List[Tuple[Attempt, Dict[str, str], int]] = []
        try:
            while waiting or running:
                while waiting and free:
                    (job, left), slot = waiting.popleft(), free.pop(0)
                    running.append((Attempt(job, place, slot), slot, left - 1))
                    yield job
                ended = [one for one in running if one[0].poll() is not None]
                for attempt, slot, left in ended:
                    running.remove((attempt, slot, left))
                    free.append(slot)
                    if not attempt.poll() and left:
                        waiting.append((attempt.job, left))
                    yield attempt.job
                if not ended:
                    time.sleep(PAUSE)
        finally:
            for attempt, _, _ in running:
                attempt.stop()

    def _slots(self, jobs: int) -> List[Dict[str, str]]:
        """What jobs that run at the same time have in their environment, each for itself."""
        threads, gpus = self.options.job_threads, self.options.job_gpus
        devices = _devices() if gpus else []
        if gpus > len(devices):
            raise InputError(f"--job-gpus {gpus}: there are {len(devices)} GPUs")
        most = len(devices) // gpus if gpus else max(processors() // (threads or 1), 1)
        workers = max(min(jobs, self.workers or most, most if gpus else jobs), 1)
        shared = {} if threads is None and THREADS in os.environ else {THREADS: str(threads or _share(workers))}
        own = [devices[number * gpus : (number + 1) * gpus] for number in range(workers)]
        return [{**shared, **({VISIBLE: ",".join(mine)} if mine else {})} for mine in own]


def _share(workers: int) -> int:
    return max(processors() // workers, 1)


def _devices() -> List[str]:
    """The GPUs that this process may use, as their variable names them."""
    if VISIBLE in os.environ:
        return [name for name in os.environ[VISIBLE].split(",") if name]
    import torch

    return list(map(str, range(torch.cuda.device_count())))

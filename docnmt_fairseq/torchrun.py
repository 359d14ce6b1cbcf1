"""``python -m docnmt_fairseq.torchrun``, in the place of ``torchrun``: the same options, and trainings that end well.

- SIGUSR1 goes to the trainings, which save and end; torchrun itself would die of it.
- Where trainings end with 75, as they were asked to, so does it, and does not start them again.
- Trainings that are started again do not find the addresses of those before them, as each start has a store of its own.
"""

import contextlib
import os
import signal
import sys
from typing import Any, List, Optional

from torch.distributed import run
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher import api

from docnmt_fairseq.fairseq_patches.training import EXIT_STATUS as STATUS

OWN_STORES = ("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")


class Agent(LocalElasticAgent):
    """What starts the trainings of a machine, and looks after them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asked = False
        signal.signal(signal.SIGUSR1, lambda number, frame: self._ask())

    def _ask(self) -> None:
        if self._pcontext is None:
            sys.exit(STATUS)  # nothing has begun
        self._asked = True
        for pid in self._pcontext.pids().values():
            with contextlib.suppress(ProcessLookupError):  # one that has ended
                os.kill(pid, signal.SIGUSR1)

    def _restart_workers(self, worker_group: Any) -> None:
        self._stop_workers(worker_group)
        self._pcontext = None  # those that are asked now have not begun
        if self._asked:
            sys.exit(STATUS)
        super()._restart_workers(worker_group)

    def _monitor_workers(self, worker_group: Any) -> Any:
        result = super()._monitor_workers(worker_group)
        if self._asked or any(failure.exitcode == STATUS for failure in result.failures.values()):
            self._remaining_restarts = 0
        return result


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs torchrun; the exit status.

    Args:
        arguments: of torchrun; None: those of this process.
    """
    os.environ.setdefault(*OWN_STORES)
    api.LocalElasticAgent = Agent  # type: ignore[attr-defined]
    try:
        run.main(arguments)
    except ChildFailedError as error:
        if any(failure.exitcode == STATUS for failure in error.failures.values()):
            return STATUS
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Trainings that are asked by a signal to end: they save a checkpoint after the update they are at, and end with 75.

They save at once, as there may be little time. Where fairseq validates after that update, it still does, and saves what
it found, or nobody would: who goes on begins with the next update.

Machines that are taken away, or whose time is up, send a signal some time before. Processes that train together may get
it at different updates, or only one of them may: each says in its log of an update whether it did, and as all logs are
added up, all know of it after the same update.
"""

import copy
import logging
import signal
from types import FrameType
from typing import Any, Dict, List, NoReturn, Optional, Sequence

import torch
from fairseq import checkpoint_utils
from fairseq.data import iterators

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.resuming import not_from_last

STATUS = 75  # "temporary failure, try again" of sysexits.h
ASKED = "asked_to_end"  # in the logs of updates

logger = logging.getLogger(__name__)


class StopRequest:
    """Whether this process was asked to end its training, and whether all know.

    Attributes:
        received: the signal.
        agreed: after the present update all processes end.
        trainer: fairseq's, which has saved and ends before another batch.
    """

    def __init__(self) -> None:
        self.received: Optional[int] = None
        self.agreed = False
        self.trainer: Any = None

    def listen(self, names: str) -> None:
        """Takes signals from now on, for a training that begins.

        Args:
            names: of the signals, without SIG, with commas between.

        Raises:
            InputError: one is none, or one that no process can take.
        """
        self.received, self.agreed, self.trainer = None, False, None
        for name in filter(None, names.split(",")):
            name = name.strip()
            number = getattr(signal, f"SIG{name}", None)
            if not isinstance(number, signal.Signals):
                raise InputError(f"--save-on-signals {names}: {name} is no signal; names are e.g. USR1,TERM")
            try:
                signal.signal(number, self._receive)
            except OSError:  # KILL and STOP
                raise InputError(f"--save-on-signals {names}: nobody can take {name}; use e.g. USR1,TERM") from None

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        self.received = number

    def tell(self, log: Dict[str, Any]) -> None:
        """Says in the log of an update whether this process was asked."""
        log[ASKED] = float(self.received is not None)

    def hear(self, logs: Sequence[Dict[str, Any]]) -> None:
        """Learns from the logs of all processes whether one was asked; those of a validation do not say."""
        self.agreed = self.agreed or any(float(log.get(ASKED, 0)) > 0 for log in logs)


REQUEST = StopRequest()  # signals are for the process


def _save(trainer: Any) -> None:
    """Writes the last checkpoint, also where trainings are told to write none: there would be nothing to go on from."""
    config = copy.copy(trainer.cfg.checkpoint)
    config.no_last_checkpoints = False
    checkpoint_utils.save_checkpoint(config, trainer, trainer.docnmt_batches, None)


def _end(trainer: Any) -> NoReturn:
    """Ends this process, as all do, and tells how to go on."""
    config, updates = trainer.cfg.checkpoint, trainer.get_num_updates()
    if config.no_last_checkpoints:
        _save(trainer)  # the best may have been measured since
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # who starts the processes ends all as soon as one has ended
    if config.no_save:
        logger.warning(f"asked to end at {updates:,} updates; --no-save: nothing is saved")
        raise SystemExit(1)
    without = " and ".join(not_from_last(config))
    again = f"the same command{f' without {without}' if without else ''} goes on"
    logger.info(f"asked to end: saved at {updates:,} updates; {again}")
    raise SystemExit(STATUS)


class EndingGroups(iterators.GroupedIterator):
    """fairseq's iterator over the batches of an update each: none comes once an end is agreed.

    fairseq asks it for more when it has validated and saved after an update, whether there are any or not.
    """

    def __next__(self) -> Any:
        if REQUEST.trainer is not None:
            _end(REQUEST.trainer)
        return super().__next__()


def patch_fairseq() -> None:
    """Lets fairseq's trainer save where an end is agreed, and its loop over updates end there."""
    from fairseq.trainer import Trainer

    iterator_of, step = Trainer.get_train_iterator, Trainer.train_step

    def get_train_iterator(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.docnmt_batches = iterator_of(self, *args, **kwargs)
        return self.docnmt_batches

    def train_step(self: Any, samples: List[Any], *args: Any, **kwargs: Any) -> Any:
        log = step(self, samples, *args, **kwargs)
        if REQUEST.agreed:
            _save(self)
            REQUEST.trainer = self
        return log

    Trainer.get_train_iterator, Trainer.train_step = get_train_iterator, train_step
    iterators.GroupedIterator = EndingGroups

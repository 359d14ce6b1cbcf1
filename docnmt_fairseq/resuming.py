"""Trainings that go on: where they were in the data, also with another number of processes.

fairseq's checkpoints say how many batches each process has had of an epoch. With another number of processes that is
another place, and data would be trained on twice, or never. Here they also say how many all had together; those that
are left are shared out among the processes that there are now. And a training that has had all its updates is at its
end, also when its command is given again, as after a kill or in a queue: fairseq would train it by one update more.
"""

import logging
import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from fairseq import checkpoint_utils
from fairseq.data import iterators

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

BATCHES, PROCESSES, ALL = "batches_in_epoch", "processes", "batches_of_epoch"  # in the state of an iterator
LAST = "checkpoint_last.pt"  # of --save-dir: what fairseq goes on from, if it is there
RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")
NO_EPOCH = -1  # as --max-epoch; 0 stands for any number

logger = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where in an epoch its present processes began.

    Attributes:
        batches: that others have had.
        steps: that these count as if they had had them.
        processes: that began the epoch; --grouped-shuffling orders batches for their number.
    """

    batches: int
    steps: int
    processes: int


class ResumableBatchIterator(iterators.EpochBatchIterator):
    """fairseq's iterator over the batches of epochs, whose state fits any number of processes."""

    begun = Place(0, 0, 1)  # set before it is asked for
    num_shards: int
    shard_id: int

    def state_dict(self) -> Dict[str, Any]:
        """fairseq's, and how many batches all processes have had, how many processes began, and all batches."""
        state: Dict[str, Any] = super().state_dict()
        steps = state["iterations_in_epoch"]
        batches = self.begun.batches + (steps - self.begun.steps) * self.num_shards if steps else 0
        return {**state, BATCHES: batches, PROCESSES: self.begun.processes, ALL: len(self.frozen_batches)}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Goes on where other processes were; the state of an older checkpoint is of as many as there are now.

        Raises:
            InputError: the epoch has no such place, as its batches are others.
        """
        steps = state_dict.get("iterations_in_epoch", 0)
        batches = int(state_dict.get(BATCHES, steps * self.num_shards))
        processes = int(state_dict.get(PROCESSES, self.num_shards))
        if steps:
            self._compare_batches(state_dict, batches)
        place = Place(batches, math.ceil(batches / self.num_shards), processes)
        self.begun = place
        super().load_state_dict({**state_dict, "iterations_in_epoch": place.steps})

    def _compare_batches(self, state_dict: Dict[str, Any], had: int) -> None:
        """Tells that a training goes on in the middle of an epoch of other batches, which has no such place."""
        there = len(self.frozen_batches)
        before, remedy = state_dict.get(ALL, there), "give the data and sizes of batches (--max-tokens, …) of before"
        told = f"the checkpoint is of epoch {state_dict['epoch']}, of which it has had {had:,} batches"
        if had >= there and state_dict.get("version", 1) > 1:  # fairseq has its way with the first
            raise InputError(
                f"{told}; here that has {there:,} in all; {remedy}, or --reset-dataloader, which begins with epoch 1"
            )
        if before != there:
            logger.warning(
                f"{told} of {before:,}; here that has {there:,} in all: what is left of it is other data than was left "
                f"then; if that is not meant, {remedy}"
            )

    def _get_iterator_for_epoch(
        self, epoch: int, shuffle: bool, fix_batches_to_gpus: bool = False, offset: int = 0
    ) -> Optional[iterators.CountingIterator]:
        if not offset:
            self.begun = Place(0, 0, self.num_shards)  # a whole epoch
        return super()._get_iterator_for_epoch(epoch, shuffle, fix_batches_to_gpus, offset)

    def ordered_batches(self, epoch: int, fix_batches_to_gpus: bool, shuffle: bool) -> List[List[int]]:
        """The batches of this process, with nothing in the place of those that were had before."""
        place = self.begun
        same = place.processes == self.num_shards and place.batches == place.steps * self.num_shards
        if same or self._supports_prefetch:
            return super().ordered_batches(epoch, fix_batches_to_gpus, shuffle)
        left = self._order_of(place.processes, epoch, shuffle)[place.batches :]
        own = iterators.ShardedIterator(left, self.num_shards, self.shard_id, fill_value=[])
        return [[] for _ in range(place.steps)] + list(own)

    def _order_of(self, processes: int, epoch: int, shuffle: bool) -> List[List[int]]:
        """All batches in the order in which other processes had them, as many at once as these were."""
        now = self.num_shards, self.shard_id
        if not self.grouped_shuffling:
            processes = 1  # the order is one for any number
        try:
            shares = []
            for number in range(processes):
                self.num_shards, self.shard_id = processes, number
                shares.append(super().ordered_batches(epoch, False, shuffle))
        finally:
            self.num_shards, self.shard_id = now
        return [batch for together in zip(*shares) for batch in together if len(batch)]


def not_from_last(cfg: Any) -> List[str]:
    """The options by which a command, given again, does not go on as it was: each as the command line has it.

    Args:
        cfg: fairseq's configuration of checkpoints.
    """
    other = cfg.restore_file not in (LAST, str(Path(cfg.save_dir) / LAST))
    return [
        *([f"--restore-file {cfg.restore_file}"] if other else []),
        *(flag_of(name) for name in RESETS if cfg[name]),
    ]


def patch_fairseq() -> None:
    """Lets fairseq iterate so, and end where a training is at its end."""
    iterators.EpochBatchIterator = ResumableBatchIterator
    load = checkpoint_utils.load_checkpoint

    def load_checkpoint(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        found = load(cfg, trainer, **kwargs)
        limits, updates = trainer.cfg.optimization, trainer.get_num_updates()
        if limits.max_update and updates >= limits.max_update:
            logger.info(f"nothing to do: {updates:,} updates were trained, --max-update is {limits.max_update:,}")
            limits.max_epoch = NO_EPOCH
        return found

    checkpoint_utils.load_checkpoint = load_checkpoint

"""Training: interruption, end, updates with missing batches, and parameter groups of the optimizer."""

import copy
import functools
import logging
import signal
from itertools import chain
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch
from fairseq.optim import FairseqOptimizer
from torch import nn

from docnmt_fairseq.errors import InputError

EXIT_STATUS = 75  # EX_TEMPFAIL of sysexits.h: the same command resumes the training
PREEMPTED = "preempted"  # key in the logging output of an update
LR_SCALE = "lr_scale"  # attribute of parameters: multiple of the scheduled learning rate

logger = logging.getLogger(__name__)


class Preemption:
    """Signals to end the training, agreed upon by all processes after the same update.

    Every process reports in the logging output of an update whether it received a signal; since the outputs of all
    processes are added up, all of them learn of it together.

    Attributes:
        received: whether this process received a signal.
        agreed: whether all processes end after the current update.
    """

    def __init__(self) -> None:
        self.received = self.agreed = False

    def listen(self, names: str) -> None:
        """Handles signals from now on, for a training that starts.

        Args:
            names: signal names without SIG, separated by commas.
        """
        self.received = self.agreed = False
        for name in filter(None, (name.strip() for name in names.split(","))):
            signal.signal(signal.Signals[f"SIG{name}"], self._receive)

    def _receive(self, number: int, frame: Optional[FrameType]) -> None:
        self.received = True

    def report(self, logging_output: Dict[str, Any]) -> None:
        """Adds to the logging output of an update whether this process received a signal."""
        logging_output[PREEMPTED] = float(self.received)

    def agree(self, logging_outputs: Sequence[Dict[str, Any]]) -> None:
        """Reads from the logging outputs of all processes whether one received a signal."""
        self.agreed = self.agreed or any(float(log.get(PREEMPTED, 0)) > 0 for log in logging_outputs)


PREEMPTION = Preemption()  # signals are delivered to the process


def save_and_exit_on_signal(validate_and_save: Callable[..., Any]) -> Callable[..., Any]:
    """Saves ``checkpoint_last.pt`` after the update in which a signal was agreed upon, and exits with status 75."""

    @functools.wraps(validate_and_save)
    def wrapper(cfg: Any, trainer: Any, task: Any, epoch_itr: Any, subsets: List[str], end_of_epoch: bool) -> Any:
        if not PREEMPTION.agreed:
            return validate_and_save(cfg, trainer, task, epoch_itr, subsets, end_of_epoch)
        _save(cfg, trainer, epoch_itr)  # first, since a validation may take longer than the time that is left
        losses, should_stop = validate_and_save(cfg, trainer, task, epoch_itr, subsets, end_of_epoch)
        if should_stop:
            return losses, should_stop
        if losses[0] is not None:
            _save(cfg, trainer, epoch_itr)  # with the best loss
        if torch.distributed.is_initialized():
            torch.distributed.barrier()  # launchers kill the other processes when one has ended
        if cfg.checkpoint.no_save:
            logger.warning("stopped by a signal; nothing was saved (--no-save)")
        else:
            logger.info(f"stopped by a signal: saved at {trainer.get_num_updates()} updates; the same command resumes")
        raise SystemExit(1 if cfg.checkpoint.no_save else EXIT_STATUS)

    return wrapper


def _save(cfg: Any, trainer: Any, epoch_itr: Any) -> None:
    from fairseq import checkpoint_utils

    config = copy.copy(cfg.checkpoint)
    config.no_last_checkpoints = False
    checkpoint_utils.save_checkpoint(config, trainer, epoch_itr, None)


def keep_finished_runs(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Ends a training that has reached ``--max-update`` without another update; forgets the previous run's best."""
    from fairseq import checkpoint_utils

    @functools.wraps(load_checkpoint)
    def wrapper(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        vars(checkpoint_utils.save_checkpoint).pop("best", None)
        loaded = load_checkpoint(cfg, trainer, **kwargs)
        limits, updates = trainer.cfg.optimization, trainer.get_num_updates()
        if limits.max_update and updates >= limits.max_update:
            logger.info(f"the training is finished: {updates:,} updates, --max-update {limits.max_update:,}")
            limits.max_epoch = -1  # 0 means no limit
        return loaded

    return wrapper


def skip_missing_batches(train_step: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves out the empty batches that pad a process's last update, unless it has no other."""

    @functools.wraps(train_step)
    def wrapper(self: Any, samples: List[Any], *args: Any, **kwargs: Any) -> Any:
        existing = [sample for sample in samples if sample]
        return train_step(self, existing or samples[:1], *args, **kwargs)

    return wrapper


def group_by_lr_scale(build_optimizer: Callable[[Any], None]) -> Callable[[Any], None]:
    """Gives parameters with an attribute ``lr_scale`` that multiple of the scheduled learning rate."""

    @functools.wraps(build_optimizer)
    def wrapper(self: Any) -> None:
        build_optimizer(self)
        parameters = chain(self.model.parameters(), self.criterion.parameters())
        divide_parameters(self._optimizer, [one for one in parameters if one.requires_grad])

    return wrapper


def divide_parameters(optimizer: Any, parameters: Sequence[nn.Parameter]) -> None:
    """Divides the single group of an optimizer by the ``lr_scale`` of its parameters.

    Args:
        optimizer: new optimizer of fairseq.
        parameters: model parameters in the order of the optimizer, which may hold float32 copies.

    Raises:
        InputError: the optimizer has several groups, or all parameters in one vector.
    """
    scales = [float(getattr(parameter, LR_SCALE, 1.0)) for parameter in parameters]
    if set(scales) <= {1.0}:
        return
    inner = _innermost(optimizer)
    groups = inner.optimizer.param_groups
    if len(groups) != 1 or len(groups[0]["params"]) != len(parameters):
        raise InputError("--context-lr-scale: --fp16 needs --fp16-no-flatten-grads; not with --optimizer composite")
    held, settings = groups[0]["params"], {name: value for name, value in groups[0].items() if name != "params"}
    order = sorted(set(scales), key=lambda scale: (scale != 1.0, scale))
    groups[:] = [{**settings, "params": [p for p, own in zip(held, scales) if own == scale]} for scale in order]

    def set_lr(lr: float) -> None:
        for group, scale in zip(inner.param_groups, order):
            group["lr"] = lr * scale

    inner.set_lr, inner.get_lr = set_lr, lambda: inner.param_groups[0]["lr"] / order[0]
    inner.set_lr(settings["lr"])


def _innermost(optimizer: Any) -> Any:
    """Returns the optimizer inside the wrappers for half precision and several processes."""
    for name in ("fp32_optimizer", "wrapped_optimizer", "_optimizer"):
        inner = getattr(optimizer, name, None)
        if isinstance(inner, FairseqOptimizer):
            return _innermost(inner)
    return optimizer

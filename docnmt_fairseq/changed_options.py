"""Trainings that go on with other options of the model or its task than they began with: told in the log. Another
optimizer is refused, and so are other dictionaries and parameters that do not fit.

fairseq takes up a checkpoint's parameters and builds model and task from the command line. Where parameters fit all the
same -- another cell, another score, windows of other sizes, a preset that a later version reads differently -- nothing
would be said. Optimizers are compared by fairseq, but those of half types all by one name, and what one keeps of a
training another may take for its own. Where parameters do not fit, fairseq hides what PyTorch says of them.
"""

import logging
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, List, Mapping, Sequence
from unittest import mock

from omegaconf import DictConfig, OmegaConf

from docnmt_fairseq.errors import InputError, misfit
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.trained_dictionaries import foreign_sides

logger = logging.getLogger(__name__)


def patch_fairseq() -> None:
    """Lets fairseq's trainer tell so in this process."""
    from fairseq import checkpoint_utils
    from fairseq.trainer import Trainer

    resume = Trainer.load_checkpoint

    def compared(self: Any, filename: str, reset_optimizer: bool = False, *args: Any, **kwargs: Any) -> Any:
        load = checkpoint_utils.load_checkpoint_to_cpu
        begins = reset_optimizer  # another training, from this one's parameters

        def load_and_compare(*arguments: Any, **named: Any) -> Dict[str, Any]:
            state: Dict[str, Any] = load(*arguments, **named)
            _compare_dictionaries(filename, foreign_sides(state.get("task_state"), self.task.state_dict()), begins)
            if not begins:
                _compare_options(filename, state, self)
            return state

        with ExitStack() as stack:
            stack.enter_context(_misfits_named(filename))
            stack.enter_context(mock.patch.object(checkpoint_utils, "load_checkpoint_to_cpu", load_and_compare))
            return resume(self, filename, reset_optimizer, *args, **kwargs)

    Trainer.load_checkpoint = compared


def _compare_options(filename: str, state: Mapping[str, Any], trainer: Any) -> None:
    """Refuses the state of another optimizer than a training's, and tells of other options."""
    cfg = state.get("cfg") or {}
    if state.get("last_optimizer_state") is not None:
        _check_optimizer(filename, cfg.get("optimizer"), trainer.cfg.optimizer)
    of_model = changed_options(cfg.get("model"), trainer.cfg.model)
    changed = of_model + changed_options(state.get("task_state"), trainer.task.state_dict())
    if changed:
        logger.warning(
            f"{filename}: goes on with other options than it was trained with: {'; '.join(changed)}; "
            "if that is not meant, give them as they were"
        )


def _compare_dictionaries(filename: str, foreign: Sequence[str], begins: bool) -> None:
    """Tells a training that it begins from a model of other dictionaries; refuses it where it goes on with that."""
    if not foreign:
        return
    told = f"{filename}: was trained with another {' and '.join(foreign)} dictionary, other symbols or in another order"
    if not begins:
        raise InputError(f"{told}; go on with the data-bin that it began with, or give another --save-dir")
    logger.warning(f"{told}: tokens begin with embeddings of others; if that is not meant, give the same dictionaries")


def changed_options(before: Any, now: Any) -> List[str]:
    """Tells which options of a model, or of what a task keeps in checkpoints, changed.

    Args:
        before: what a checkpoint has.
        now: what the training has that takes it up.

    Returns:
        A text for each option that both have with different values; none for models without declared options.
    """
    if not isinstance(now, Mapping):
        return []
    old, new = _values(before), _values(now)
    return [
        f"{flag_of(name)} was {old[name]}, is {value}"
        for name, value in new.items()
        if name in old and old[name] != value and name not in ("_name", "seed")
    ]


@contextmanager
def _misfits_named(filename: str) -> Iterator[None]:
    """Inside the block, fairseq's and PyTorch's errors about parameters of another model are one that says which.

    Raises:
        InputError: a checkpoint's parameters, or its optimizer's state, are not those of the model that is trained.
    """
    try:
        yield
    except AssertionError as error:
        if "does not match" not in str(error):  # fairseq's, of criterion, and of optimizer in this or that type
            raise
        raise InputError(f"{filename}: {error}; or go on as it was trained") from error
    except ValueError as error:
        if "parameter group" not in str(error):  # PyTorch's
            raise
        raise InputError(
            f"{filename}: its optimizer's state is of other parameters than this training has; go on with the options "
            "that it began with, or train another model in another --save-dir (--finetune-from-model begins as a "
            "trained one)"
        ) from error
    except Exception as error:
        reason = error.__context__
        if type(error) is not Exception or reason is None:  # fairseq raises it in place of whatever was wrong
            raise
        if isinstance(reason, InputError):
            raise reason from None
        raise InputError(
            f"{filename}: its parameters do not fit this model; --arch, sizes, layers and shared embeddings must be as "
            f"they were in its training, and dictionaries those of its data-bin ({misfit(reason)})"
        ) from error


def _check_optimizer(filename: str, before: Any, now: Any) -> None:
    """Raises :class:`InputError` where a checkpoint has the state of another optimizer than that of the training."""
    old, new = (_values(config).get("_name") for config in (before, now))
    if old and new and old != new:
        raise InputError(
            f"--optimizer {new}: {filename} was trained with {old}; go on with that, or give --reset-optimizer, which "
            "begins anew with the moments of the gradients"
        )


def _values(config: Any) -> Mapping[str, Any]:
    """Options by name, as plain values."""
    if isinstance(config, DictConfig):
        config = OmegaConf.to_container(config, resolve=True, enum_to_str=True)
    values = config if isinstance(config, Mapping) else vars(config) if hasattr(config, "__dict__") else {}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

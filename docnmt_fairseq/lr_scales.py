"""Parameters that learn at a multiple of the scheduler's learning rate, with any optimiser and half type of fairseq.

A model marks them (:func:`mark`) when it is built. What the optimiser of its training then holds are two groups: those
at the scheduler's rate and, after them, the marked ones.
"""

from typing import Any, Dict, Iterable, List, Optional

import torch
from fairseq.optim.fairseq_optimizer import FairseqOptimizer
from torch import nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.training_setup import RATES

MARK = "lr_scale"  # of a parameter
SCALES = "lr_scales"  # of an optimiser: one a group


def mark(parameters: Iterable[nn.Parameter], scale: float) -> None:
    """Lets parameters learn at so many times the learning rate."""
    for parameter in parameters:
        setattr(parameter, MARK, scale)


def scale_of(parameter: nn.Parameter) -> float:
    """How many times the learning rate a parameter learns at."""
    return float(getattr(parameter, MARK, 1.0))


def group_by_scale(optimizer: FairseqOptimizer, parameters: List[nn.Parameter]) -> None:
    """Makes a group of the optimiser of every scale; leaves alone what all learns at the scheduler's rate.

    Args:
        optimizer: fairseq's, just built.
        parameters: the model's, in the order in which it was given them; it may hold copies in float32.

    Raises:
        InputError: it holds them otherwise than one by one.
    """
    scales = [scale_of(parameter) for parameter in parameters]
    if set(scales) <= {1.0}:
        return
    holder = _innermost(optimizer)
    groups = holder.optimizer.param_groups
    if len(groups) != 1 or len(groups[0]["params"]) != len(parameters):
        raise InputError(f"{RATES}: not with an optimizer that has groups of its own, or all parameters in one vector")
    held, rest = groups[0]["params"], {name: value for name, value in groups[0].items() if name != "params"}
    order = sorted(set(scales), key=lambda scale: (scale != 1.0, scale))
    groups[:] = [{**rest, "params": [p for p, own in zip(held, scales) if own == scale]} for scale in order]
    setattr(holder, SCALES, order)
    holder.set_lr(rest["lr"])


def _innermost(optimizer: Any) -> FairseqOptimizer:
    """What a wrapper for half types or several processes wraps: it has the rates."""
    for name in ("fp32_optimizer", "wrapped_optimizer", "_optimizer"):
        inner = getattr(optimizer, name, None)
        if isinstance(inner, FairseqOptimizer):
            return _innermost(inner)
    assert isinstance(optimizer, FairseqOptimizer)
    return optimizer


def patch_fairseq() -> None:
    """Lets fairseq's trainer and optimisers do so, in this process."""
    from fairseq.trainer import Trainer

    build = Trainer._build_optimizer

    def _build_optimizer(self: Any) -> None:
        build(self)
        modules = (self.model, self.criterion)
        trained = [one for module in modules for one in module.parameters() if one.requires_grad]
        group_by_scale(self._optimizer, trained)

    def set_lr(self: FairseqOptimizer, lr: float) -> None:
        for group, scale in zip(self.param_groups, getattr(self, SCALES, [1.0] * len(self.param_groups))):
            group["lr"] = lr * scale

    def get_lr(self: FairseqOptimizer) -> float:
        return float(self.param_groups[0]["lr"] / getattr(self, SCALES, [1.0])[0])

    load = FairseqOptimizer.load_state_dict

    def load_state_dict(
        self: FairseqOptimizer, state_dict: Dict[str, Any], optimizer_overrides: Optional[Dict[str, Any]] = None
    ) -> None:
        ours = isinstance(getattr(self, "_optimizer", None), torch.optim.Optimizer)
        if ours and len(state_dict["param_groups"]) != len(self.param_groups):
            raise InputError(
                f"{RATES}: the checkpoint's optimizer has {len(state_dict['param_groups'])} learning rates and this "
                f"training {len(self.param_groups)}; give the option of its training, or --reset-optimizer"
            )
        load(self, state_dict, optimizer_overrides)

    Trainer._build_optimizer = _build_optimizer
    FairseqOptimizer.set_lr, FairseqOptimizer.get_lr = set_lr, get_lr
    FairseqOptimizer.load_state_dict = load_state_dict

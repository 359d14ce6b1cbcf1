"""Parameter groups with a multiple of the scheduled learning rate (``--context-lr-scale``)."""

from typing import Any, List

from fairseq.optim.fairseq_optimizer import FairseqOptimizer
from torch import nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.transformer.model import LR_SCALE


def group_by_lr_scale(optimizer: FairseqOptimizer, parameters: List[nn.Parameter]) -> None:
    """Divides the single group of an optimizer by the attribute ``lr_scale`` of its parameters.

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


def _innermost(optimizer: Any) -> FairseqOptimizer:
    """Optimizer inside the wrappers for half precision and several processes."""
    for name in ("fp32_optimizer", "wrapped_optimizer", "_optimizer"):
        inner = getattr(optimizer, name, None)
        if isinstance(inner, FairseqOptimizer):
            return _innermost(inner)
    assert isinstance(optimizer, FairseqOptimizer)
    return optimizer

"""Losses that parts of a model add to the translation's, and figures that they log: :func:`collect`.

A part asks :func:`collector` once a call; it is None unless somebody trains or validates with what is collected. It
hands in sums over what the loss is of, e.g. tokens: batches, processes and ``--update-freq`` then add up to the same.
"""

from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class AuxiliaryLoss:
    """A sum over items.

    Attributes:
        name: under which its mean is logged.
        total: a scalar, with a gradient where it has a weight.
        count: what it is divided by there, summed up like it: how many items these are, or how much they are at most.
        weight: what the sum counts beside the translation's, which is a sum over target tokens; 0: it is logged only.
    """

    name: str
    total: Tensor
    count: Union[int, Tensor]
    weight: float = 0.0


HandIn = Callable[[AuxiliaryLoss], None]


@dataclass
class Collected:
    """What was handed in, in the order of the computation."""

    losses: List[AuxiliaryLoss] = field(default_factory=list)

    def weighted(self) -> Optional[Tensor]:
        """What to add to the loss; None: nothing."""
        terms = [loss.weight * loss.total for loss in self.losses if loss.weight]
        return torch.stack(terms).sum() if terms else None

    def sums(self) -> Dict[str, Tuple[Tensor, Tensor]]:
        """By name, the sum and what it is to be divided by, over all parts."""
        sums: Dict[str, Tuple[Tensor, Tensor]] = {}
        for loss in self.losses:
            zero = loss.total.new_zeros(())
            total, count = sums.get(loss.name, (zero, zero))
            sums[loss.name] = (total + loss.total.detach(), count + loss.count)
        return sums


_current: ContextVar[Optional[Collected]] = ContextVar("auxiliary_losses", default=None)


@contextmanager
def collect() -> Iterator[Collected]:
    """What parts hand in inside the block."""
    collected = Collected()
    token = _current.set(collected)
    try:
        yield collected
    finally:
        _current.reset(token)


def collector() -> Optional[HandIn]:
    """What takes losses; None if nobody collects them."""
    collected = _current.get()
    return None if collected is None else collected.losses.append


def recomputed(module: nn.Module, *inputs: Any) -> Any:
    """``module(*inputs)``, whose activations are computed again in the backward pass instead of kept.

    What the module hands in is kept from the first time; the second time it must compute the same, for nobody.
    """
    collecting = _current.get() is not None

    def contexts() -> Tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        return nullcontext(), collect() if collecting else nullcontext()

    return checkpoint(module, *inputs, use_reentrant=False, context_fn=contexts)

"""Auxiliary losses and logged figures of model parts, collected during the forward pass by :func:`collect`.

A part calls :func:`collector` once per forward pass; it is None unless a task collects losses. Losses are sums over
items, e.g. tokens, so that they add up across batches, processes and ``--update-freq``.
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
    """A loss as a sum over items."""

    name: str  # name of the logged mean
    total: Tensor  # scalar sum, with a gradient if it has a weight
    count: Union[int, Tensor]  # denominator of the mean, summed like the total: number of items, or their maximal total
    weight: float = 0.0  # weight relative to the translation loss, which is a sum over target tokens; 0: logged only


HandIn = Callable[[AuxiliaryLoss], None]


@dataclass
class Collected:
    """Collected losses, in the order of computation."""

    losses: List[AuxiliaryLoss] = field(default_factory=list)

    def weighted(self) -> Optional[Tensor]:
        """Weighted sum to add to the translation loss; None without weighted losses."""
        terms = [loss.weight * loss.total for loss in self.losses if loss.weight]
        return torch.stack(terms).sum() if terms else None

    def sums(self) -> Dict[str, Tuple[Tensor, Tensor]]:
        """Total and count of each name, over all parts."""
        sums: Dict[str, Tuple[Tensor, Tensor]] = {}
        for loss in self.losses:
            zero = loss.total.new_zeros(())
            total, count = sums.get(loss.name, (zero, zero))
            sums[loss.name] = (total + loss.total.detach(), count + loss.count)
        return sums


_current: ContextVar[Optional[Collected]] = ContextVar("auxiliary_losses", default=None)


@contextmanager
def collect() -> Iterator[Collected]:
    """Context manager that collects the losses of parts called inside the block."""
    collected = Collected()
    token = _current.set(collected)
    try:
        yield collected
    finally:
        _current.reset(token)


def collector() -> Optional[HandIn]:
    """Function that accepts losses; None if none are collected."""
    collected = _current.get()
    return None if collected is None else collected.losses.append


def recomputed(module: nn.Module, *inputs: Any) -> Any:
    """``module(*inputs)`` with activation checkpointing: activations are recomputed in the backward pass.

    Losses are kept from the first computation; those of the recomputation are discarded.
    """
    collecting = _current.get() is not None

    def contexts() -> Tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        return nullcontext(), collect() if collecting else nullcontext()

    return checkpoint(module, *inputs, use_reentrant=False, context_fn=contexts)

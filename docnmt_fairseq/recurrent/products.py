"""Matrix products as PyTorch's own LSTM computes them on CPUs, with oneDNN.

PyTorch's ordinary products use MKL there, which reaches less than half of the arithmetic of some processors, and packs
the weights anew at every step of a recurrence.
"""

import functools
from typing import Callable, NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.layers.precision import without_autocast


class _OneDNN(NamedTuple):
    """oneDNN's product, and what packs weights for it."""

    linear: Callable[..., Tensor]
    pack: Callable[[Tensor, int], Tensor]


@functools.cache
def _onednn() -> Optional[_OneDNN]:
    """What PyTorch has of oneDNN; None where it is built without."""
    try:
        return _OneDNN(torch.ops.mkldnn._linear_pointwise, torch.ops.mkldnn._reorder_linear_weight)
    except (AttributeError, RuntimeError):
        return None


def _serving(x: Tensor) -> Optional[_OneDNN]:
    """oneDNN where it can compute with x, else None."""
    return _onednn() if x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0 else None


def _plain(x: Tensor, weight: Tensor) -> Tensor:
    with without_autocast(x):
        return F.linear(x, weight)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x weightᵀ, [M, N] from [M, K] and [N, K], of their type also under autocast; no gradient."""
    onednn = _serving(x)
    if onednn is None:
        return _plain(x, weight)
    return onednn.linear(x.contiguous(), weight.contiguous(), None, "none", [], "")


def repeated_product(weight: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """The function from x [M, K] to x weightᵀ [M, N], for many x of some ``rows``; no gradient."""
    onednn = _serving(weight)
    if onednn is None:
        return lambda x: _plain(x, weight)
    linear, packed = onednn.linear, onednn.pack(weight.contiguous(), rows)
    return lambda x: linear(x.contiguous(), packed, None, "none", [], "")

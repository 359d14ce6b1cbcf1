"""Matrix products as PyTorch's own LSTM computes them on CPUs, with oneDNN.

PyTorch's ordinary products use MKL there, which reaches less than half of the arithmetic of some processors, and packs
the weights anew at every step of a recurrence.
"""

import functools
from typing import Callable, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.context.conditional.kernels.precision import without_autocast


@functools.cache
def _onednn() -> Optional[Tuple[Callable, Callable]]:
    """Returns oneDNN's product, and what packs weights for it; None where PyTorch is built without."""
    try:
        return torch.ops.mkldnn._linear_pointwise, torch.ops.mkldnn._reorder_linear_weight
    except (AttributeError, RuntimeError):
        return None


def _served(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.numel() > 0 and _onednn() is not None


def _plain(x: Tensor, weight: Tensor) -> Tensor:
    with without_autocast(x):
        return F.linear(x, weight)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Returns x weightᵀ, [M, N] from [M, K] and [N, K], of their type also under autocast; no gradient."""
    if not _served(x):
        return _plain(x, weight)
    return _onednn()[0](x.contiguous(), weight.contiguous(), None, "none", [], "")


def repeated_product(weight: Tensor, rows: int) -> Callable[[Tensor], Tensor]:
    """Returns the function from x [M, K] to x weightᵀ [M, N], for many x of some ``rows``; no gradient."""
    if not _served(weight):
        return lambda x: _plain(x, weight)
    linear, pack = _onednn()
    packed = pack(weight.contiguous(), rows)
    return lambda x: linear(x.contiguous(), packed, None, "none", [], "")

"""Deterministic tie-breaking: of equal values, the one with the lower index wins."""

from typing import Tuple

import torch
from torch import Tensor

SORTED = 256  # up to this many values are sorted on a GPU; longer rows use topk of distinct integers


def distinct_integers(x: Tensor, index: Tensor) -> Tensor:
    """Maps float32 values to distinct int64 in the same order; of equal values the one with the lower index is larger.

    The upper half orders like the value, the lower half decreases with the index.

    Args:
        x: [..., n].
        index: [n] or [..., n], in 0..2³² − 1.
    """
    bits = (x + 0.0).view(torch.int32)  # −0.0 becomes 0.0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # the bits of negative numbers decrease as the number increases
    return (ordered.to(torch.int64) << 32) + (0xFFFFFFFF - index)


def stable_top_k(x: Tensor, k: int) -> Tuple[Tensor, Tensor]:
    """Returns the min(k, n) largest values of the last dimension and their indices, largest first.

    Args:
        x: [..., n].
        k: at least 1.
    """
    if x.device.type != "cpu":
        return _top_k_asynchronous(x, k)
    if k < x.size(-1):
        values, index = torch.topk(x, k + 1, dim=-1)
        # topk does not define which of several equal values it takes: that matters at the cut only.
        if not (values[..., k - 1] == values[..., k]).any():
            return values[..., :k], index[..., :k]
    values, index = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[..., :k], index[..., :k]


def _top_k_asynchronous(x: Tensor, k: int) -> Tuple[Tensor, Tensor]:
    """:func:`stable_top_k` for a GPU: asking whether equal values straddle the cut would wait for it."""
    n = x.size(-1)
    if n <= SORTED or x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        values, index = torch.sort(x, dim=-1, descending=True, stable=True)
        return values[..., :k], index[..., :k]
    index = distinct_integers(x.float(), torch.arange(n, device=x.device)).topk(min(k, n), dim=-1).indices
    return x.gather(-1, index), index

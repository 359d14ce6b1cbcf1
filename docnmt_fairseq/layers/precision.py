"""Numerics: float32 where half types would be wrong, size of intermediate results, deterministic top-k.

PyTorch accumulates sums over tokens in the type of their terms. In bfloat16 a sum of equal terms stops growing at 256:
on a CPU, the gradient of an embedding that 4,096 tokens share comes out a tenth of its value, and that of the bias of a
layer norm a fifth. :func:`gather_rows`, :class:`Embedding` and :class:`LayerNorm` accumulate in float32. (PyTorch does
so itself in matrix products, and in sums and means over a dimension.)
"""

from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MAX_ELEMENTS = 2**26  # on devices where launching an operation costs more than many elements


def chunk_elements(device: torch.device, on_cpu: int) -> int:
    """Returns the maximum number of elements of an intermediate result: on a CPU, what its cache holds."""
    return on_cpu if device.type == "cpu" else MAX_ELEMENTS


def computing_type(dtype: torch.dtype) -> torch.dtype:
    """Returns the type of relevance, logits and softmax for states of a type: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def without_autocast(x: Tensor) -> torch.autocast:
    """Context in which products on x's device keep the type of their factors."""
    return torch.autocast(x.device.type, enabled=False)


class _GatherRows(torch.autograd.Function):
    """Rows of a half type; the gradient of a row gathered several times is accumulated in float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, padding: Optional[int]) -> Tensor:
        ctx.shape, ctx.padding = x.shape, padding
        ctx.save_for_backward(index)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        grad_rows = grad.new_zeros(ctx.shape, dtype=computing_type(grad.dtype))
        grad_rows.index_add_(0, index, grad.to(grad_rows.dtype))
        if ctx.padding is not None:
            grad_rows[ctx.padding] = 0
        return grad_rows.to(grad.dtype), None, None


def gather_rows(x: Tensor, index: Tensor) -> Tensor:
    """Returns rows [k, ...] of x [n, ...] by their numbers [k], which may repeat."""
    return _GatherRows.apply(x, index, None) if _is_half(x) else x.index_select(0, index)


class Embedding(nn.Embedding):
    """PyTorch's embedding, with gradients accumulated in float32 on a CPU, as a GPU does."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns [..., d] of numbers [...]."""
        if not is_half_on_cpu(self.weight):
            return super().forward(input)
        rows: Tensor = _GatherRows.apply(self.weight, input.flatten(), self.padding_idx)
        return rows.unflatten(0, input.shape)


class LayerNorm(nn.LayerNorm):
    """PyTorch's layer norm, in float32 for half types on a CPU; a GPU accumulates its gradients in float32 anyway."""

    def forward(self, input: Tensor) -> Tensor:
        """Returns a tensor of the input's shape."""
        if not is_half_on_cpu(input):
            return super().forward(input)
        weight, bias = (None if part is None else part.float() for part in (self.weight, self.bias))
        return F.layer_norm(input.float(), self.normalized_shape, weight, bias, self.eps).to(input.dtype)


def _is_half(x: Tensor) -> bool:
    return x.is_floating_point() and x.dtype != computing_type(x.dtype)


def is_half_on_cpu(x: Tensor) -> bool:
    """Returns whether x is of a half type on a CPU, where PyTorch may accumulate in that type."""
    return x.device.type == "cpu" and _is_half(x)


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
    """Returns the min(k, n) largest values of the last dimension and their indices, largest first."""
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

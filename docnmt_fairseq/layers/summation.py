"""Sums over tokens that PyTorch adds up in the type of their terms, in float32 where that is a half type.

In bfloat16 a sum of equal terms stops growing at 256 of them: on a CPU the gradient of an embedding that 4,096 tokens
share comes out a tenth of what it is, and that of a layer norm's bias a fifth. (Products, sums and means over a
dimension are added up in float32 by PyTorch itself and rounded once.)
"""

from typing import Optional, Protocol, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.layers.precision import computing_type


class _RowsContext(Protocol):
    """What the forward pass leaves to the backward pass."""

    shape: torch.Size
    padding: Optional[int]
    saved_tensors: Tuple[Tensor]

    def save_for_backward(self, index: Tensor) -> None: ...


class _Rows(torch.autograd.Function):
    """Rows of a half type; what several of them pass back to one is added up in float32."""

    @staticmethod
    def forward(ctx: _RowsContext, x: Tensor, index: Tensor, padding: Optional[int]) -> Tensor:
        ctx.shape, ctx.padding = x.shape, padding
        ctx.save_for_backward(index)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: _RowsContext, gradient: Tensor) -> Tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        of_rows = gradient.new_zeros(ctx.shape, dtype=computing_type(gradient.dtype))
        of_rows.index_add_(0, index, gradient.to(of_rows.dtype))
        if ctx.padding is not None:
            of_rows[ctx.padding] = 0
        return of_rows.to(gradient.dtype), None, None


def rows_of(x: Tensor, index: Tensor) -> Tensor:
    """Rows [k, ...] of x [n, ...] by their numbers [k], which may repeat."""
    return _Rows.apply(x, index, None) if _is_half(x) else x.index_select(0, index)


class Embedding(nn.Embedding):
    """PyTorch's, whose gradient is added up in float32 on a CPU, too, as it is on a GPU."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., d] of numbers [...]."""
        if not is_half_on_cpu(self.weight):
            return super().forward(input)
        rows: Tensor = _Rows.apply(self.weight, input.flatten(), self.padding_idx)
        return rows.unflatten(0, input.shape)


class LayerNorm(nn.LayerNorm):
    """PyTorch's, in float32 for half types on a CPU; a GPU adds its gradients up in float32 anyway."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        if not is_half_on_cpu(input):
            return super().forward(input)
        weight, bias = (None if part is None else part.float() for part in (self.weight, self.bias))
        return F.layer_norm(input.float(), self.normalized_shape, weight, bias, self.eps).to(input.dtype)


def _is_half(x: Tensor) -> bool:
    return x.is_floating_point() and x.dtype != computing_type(x.dtype)


def is_half_on_cpu(x: Tensor) -> bool:
    """Whether x is of a half type, and PyTorch may add up its like in that type."""
    return x.device.type == "cpu" and _is_half(x)

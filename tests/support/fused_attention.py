"""Fused attention kernels by their equations on the CPU; dropout is drawn from a seed, again in the backward pass.

By name of PyTorch's operator, with its arguments and results; unused results are empty.
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Setting:
    """Settings of an attention.

    Attributes:
        dropout: probability of dropping a weight.
        causal: query i sees keys 0..i only.
        scale: of products; None: 1/√d.
        seed: seed of dropout.
        bias: added to scaled products; None: nothing.
    """

    dropout: float
    causal: bool
    scale: Optional[float]
    seed: int
    bias: Optional[Tensor] = None

    def scale_of(self, q: Tensor) -> float:
        """Returns the scale of products."""
        return q.size(-1) ** -0.5 if self.scale is None else self.scale

    def weights(self, q: Tensor, k: Tensor) -> Tuple[Tensor, Tensor]:
        """Returns softmax(q kᵀ · scale + bias) [..., m, n] and the factors of dropout, 0 or 1/(1 − dropout)."""
        scores = (q @ k.transpose(-1, -2)) * self.scale_of(q)
        if self.bias is not None:
            scores = scores + self.bias
        if self.causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        draws = torch.rand(scores.shape, generator=torch.Generator().manual_seed(self.seed))
        return scores.softmax(-1), (draws >= self.dropout).to(scores.dtype) / (1 - self.dropout)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Returns the attention of queries [..., m, d] to keys and values [..., n, d]."""
        weights, kept = self.weights(q, k)
        return (weights * kept) @ v

    def gradients(self, grad: Tensor, q: Tensor, k: Tensor, v: Tensor) -> List[Tensor]:
        """Returns the gradients of q, k and v."""
        weights, kept = self.weights(q, k)
        of_weights = (grad @ v.transpose(-1, -2)) * kept
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * self.scale_of(q)
        return [of_scores @ k, of_scores.transpose(-1, -2) @ q, (weights * kept).transpose(-1, -2) @ grad]


def new_seed() -> Tensor:
    """Returns a seed in the form of PyTorch's kernels."""
    return torch.randint(2**31, (2,))


def padded(
    q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor] = None, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, *, scale: Optional[float] = None,
) -> Tuple[Any, ...]:  # fmt: skip
    """``_scaled_dot_product_fused_attention_overrideable``: rows padded together, [b, H, m, d]."""
    seed, nothing = new_seed(), q.new_zeros(0)
    out = Setting(dropout_p, is_causal, scale, int(seed[0]), bias).attend(q, k, v)
    out = out.transpose(1, 2).contiguous().transpose(1, 2)
    return out, nothing, nothing, nothing, q.size(2), k.size(2), seed, nothing, nothing


def padded_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor], grad_input_mask: Any, out: Tensor,
    logsumexp: Tensor, cum_seq_q: Tensor, cum_seq_k: Tensor, max_q: int, max_k: int, dropout_p: float, is_causal: bool,
    seed: Tensor, offset: Tensor, *, scale: Optional[float] = None,
) -> Tuple[Any, ...]:  # fmt: skip
    """Its gradients; none of the bias."""
    bias = None if bias is None or not bias.numel() else bias
    return (*Setting(dropout_p, is_causal, scale, int(seed[0]), bias).gradients(grad, q, k, v), None)


def _rows(cum_q: Tensor, cum_k: Tensor) -> Iterator[Tuple[int, slice, slice]]:
    """Yields number, queries and keys of every row."""
    bounds = zip(cum_q[:-1].tolist(), cum_q[1:].tolist(), cum_k[:-1].tolist(), cum_k[1:].tolist())
    for number, (first, end, first_key, end_key) in enumerate(bounds):
        yield number, slice(first, end), slice(first_key, end_key)


def packed(
    q: Tensor, k: Tensor, v: Tensor, cum_seq_q: Tensor, cum_seq_k: Tensor, max_q: int, max_k: int, dropout_p: float,
    is_causal: bool, return_debug_mask: bool, *, scale: Optional[float] = None, **others: Any,
) -> Tuple[Tensor, ...]:  # fmt: skip
    """``_flash_attention_forward``: rows one after another, [N, H, d]; refuses what the kernel refuses."""
    for x, cumulative, most in ((q, cum_seq_q, max_q), (k, cum_seq_k, max_k)):
        if cumulative.dtype != torch.int32 or int(cumulative[-1]) != len(x) or int(cumulative.diff().max()) != most:
            raise RuntimeError("cumulative lengths are int32, end with the number of rows, and the longest is given")
    if q.size(-1) % 8 or not q.shape[1:] == k.shape[1:] == v.shape[1:]:
        raise RuntimeError(f"heads of {q.size(-1)}, {k.size(-1)} and {v.size(-1)}: must be one multiple of 8")
    if not q.stride(-1) == k.stride(-1) == v.stride(-1) == 1:
        raise RuntimeError("the last dimension must be contiguous")
    seed, nothing, out = new_seed(), q.new_zeros(0), torch.empty_like(q)
    for number, of_q, of_k in _rows(cum_seq_q, cum_seq_k):
        setting = Setting(dropout_p, is_causal, scale, int(seed[0]) + number)
        sides = (x[rows].transpose(0, 1) for x, rows in ((q, of_q), (k, of_k), (v, of_k)))
        out[of_q] = setting.attend(*sides).transpose(0, 1)
    return out, nothing, seed, nothing, nothing


def packed_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, cum_seq_q: Tensor, cum_seq_k: Tensor,
    max_q: int, max_k: int, dropout_p: float, is_causal: bool, seed: Tensor, unused: Tensor, *,
    scale: Optional[float] = None, **others: Any,
) -> Tuple[Tensor, ...]:  # fmt: skip
    """Its gradients."""
    gradients = [torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (q, k, v)]
    for number, of_q, of_k in _rows(cum_seq_q, cum_seq_k):
        setting = Setting(dropout_p, is_causal, scale, int(seed[0]) + number)
        rows = (of_q, of_q, of_k, of_k)
        sides = (x[some].transpose(0, 1) for x, some in zip((grad, q, k, v), rows))
        for gradient, some, part in zip(gradients, rows[1:], setting.gradients(*sides)):
            gradient[some] = part.transpose(0, 1)
    return tuple(gradients)


ATTENTION: Dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_fused_attention_overrideable": padded,
    "_scaled_dot_product_fused_attention_overrideable_backward": padded_backward,
    "_flash_attention_forward": packed,
    "_flash_attention_backward": packed_backward,
}

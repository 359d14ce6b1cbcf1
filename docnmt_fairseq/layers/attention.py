"""Scaled dot-product attention between packed rows, its backends, and multi-head attention on top of it.

A backend computes softmax(q kᵀ · scale) v of every row. All give the same results, except for rounding and for which
weights dropout drops.
"""

from contextlib import nullcontext
from functools import cache
from typing import Any, Callable, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, WithinSentences
from docnmt_fairseq.batch.ragged import AttentionPlan, Slots
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.capture import weights_of_plan
from docnmt_fairseq.layers.precision import computing_type, gather_rows, without_autocast

FLASH_TYPES = (torch.float16, torch.bfloat16)
MAX_FLASH_WIDTH, FLASH_WIDTH_MULTIPLE = 256, 8  # head widths of the flash kernel


def ragged_attention(
    q: Tensor, k: Tensor, v: Tensor, plan: AttentionPlan, dropout: float = 0.0, scale: Optional[float] = None
) -> Tensor:
    """Returns softmax(q kᵀ · scale) v of every row, [T] eq. 1: [queries of the plan, H, d_v].

    Args:
        q: [N_q, H, d_k] packed queries.
        k: [N_k, H, d_k] packed keys.
        v: [N_k, H, d_v] packed values.
        scale: default 1/√d_k.
    """
    backend = flash_attention if serves_flash(q, k, v) else grouped_attention
    return backend(q, k, v, plan, dropout, scale)


@cache
def has_flash_kernel(device: torch.device) -> bool:
    """Returns whether PyTorch has the flash kernel for a device: a GPU of compute capability 8.0 or later."""
    if device.type != "cuda" or not torch.backends.cuda.is_flash_attention_available():
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def serves_flash(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Returns whether :func:`flash_attention` computes such tensors: half types, heads up to 256 wide.

    ``torch.backends.cuda.enable_flash_sdp(False)`` switches it off.
    """
    fits = q.dtype in FLASH_TYPES and q.dtype == k.dtype == v.dtype and k.size(-1) == v.size(-1) <= MAX_FLASH_WIDTH
    return fits and torch.backends.cuda.flash_sdp_enabled() and has_flash_kernel(q.device)


def flash_attention(
    q: Tensor, k: Tensor, v: Tensor, plan: AttentionPlan, dropout: float, scale: Optional[float]
) -> Tensor:
    """Flash attention to packed rows of different lengths in one call without padding; see :func:`ragged_attention`.

    PyTorch's ``_flash_attention_forward``; its public wrapper ``torch.nn.attention.varlen`` has no dropout.
    """
    d, queries, keys = q.size(-1), plan.packed_queries, plan.packed_keys
    missing = -d % FLASH_WIDTH_MULTIPLE
    q, k, v = (queries.take(q), keys.take(k), keys.take(v))
    if missing:
        q, k, v = (F.pad(x, (0, missing)) for x in (q, k, v))
    output, *_ = torch.ops.aten._flash_attention_forward(
        q, k, v, queries.cumulative, keys.cumulative, queries.longest, keys.longest,
        dropout, plan.causal, False, scale=d**-0.5 if scale is None else scale,
    )  # fmt: skip
    return output[..., :d] if missing else output


def grouped_attention(
    q: Tensor, k: Tensor, v: Tensor, plan: AttentionPlan, dropout: float, scale: Optional[float]
) -> Tensor:
    """One ``scaled_dot_product_attention`` per group of padded rows, on every device; see :func:`ragged_attention`."""
    sides = ((q, plan.queries), (k, plan.keys), (v, plan.keys))
    # On a CPU, the backward pass in bfloat16 takes four times as long as in float32, and is less precise.
    on_cpu = q.device.type == "cpu"
    dtype = computing_type(q.dtype) if on_cpu else q.dtype
    padded = (slots.split(_ToSlots.apply(x.to(dtype), slots)) for x, slots in sides)  # a list of [b, w, H, d] each
    outputs = []
    for padding, *block in zip(plan.keys.paddings, *padded):
        q_block, k_block, v_block = (x.transpose(1, 2) for x in block)  # [b, H, w, d]
        # In causal rows, padding follows every real query: the causal mask hides it already.
        hide = padding is not None and not plan.causal
        mask = ~padding[:, None, None, :] if hide else None  # [b, 1, 1, w_k]
        with without_autocast(q) if on_cpu else nullcontext():
            output = F.scaled_dot_product_attention(
                q_block, k_block, v_block, attn_mask=mask, dropout_p=dropout, is_causal=plan.causal, scale=scale
            )  # [b, H, w_q, d_v]
        outputs.append(output.transpose(1, 2).flatten(0, 1))
    return _FromSlots.apply(torch.cat(outputs), plan.queries).to(q.dtype)


class _ToSlots(torch.autograd.Function):
    """Packed items [total, ...] to padded slots [slots, ...].

    Padding is masked wherever it is used, so its gradient is zero and need not be accumulated: the gradient is a
    gather, too, and thus deterministic on every device.
    """

    @staticmethod
    def forward(ctx: Any, packed: Tensor, slots: Slots) -> Tensor:
        ctx.slots = slots
        return packed.index_select(0, slots.index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None]:
        slots = ctx.slots
        grad_items = grad.index_select(0, slots.slots)
        if len(slots.items) < slots.total:
            grad_items = grad_items.new_zeros(slots.total, *grad.shape[1:]).index_copy_(0, slots.items, grad_items)
        return grad_items, None


class _FromSlots(torch.autograd.Function):
    """Padded slots [slots, ...] to the items that have one, [k, ...]."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, slots: Slots) -> Tensor:
        ctx.slots = slots
        return padded.index_select(0, slots.slots)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, None]:
        slots = ctx.slots
        grad_slots = grad.new_zeros(len(slots.index), *grad.shape[1:])
        return grad_slots.index_copy_(0, slots.slots, grad), None


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V), V = K; the plan says which queries attend to which keys. Parameters are named as in fairseq.

    Args:
        source_dim: d_s, width of the states that keys and values are made of; None: d.
    """

    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear
    out_proj: nn.Linear

    def __init__(self, embed_dim: int, heads: int, dropout: float = 0.0, source_dim: Optional[int] = None):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.add_projections(embed_dim, embed_dim if source_dim is None else source_dim)

    def add_projections(self, embed_dim: int, source_dim: int) -> None:
        """Creates the projections, in the order of checkpoints and of random initialisation."""
        gain = 2**-0.5 if source_dim == embed_dim else 1.0  # as fairseq
        self.q_proj = projection(embed_dim, embed_dim, gain=gain)
        self.k_proj = projection(source_dim, embed_dim, gain=gain)
        self.v_proj = projection(source_dim, embed_dim, gain=gain)
        self.out_proj = projection(embed_dim, embed_dim, zero_bias=True)

    def attend(
        self,
        x: Tensor,
        source: Tensor,
        plan: AttentionPlan,
        gather: Optional[Tuple[Tensor, Tensor]] = None,
        observe: Optional[Callable[[Tensor], None]] = None,
    ) -> Tensor:
        """Returns the attention output of each query, [queries of the plan, d].

        Args:
            x: [N_q, d] packed states that queries are made of.
            source: [N_k, d_s] packed states that keys and values are made of.
            gather: indices into ``x`` and ``source`` of the plan's queries and keys, unless these are all states in
                order: a state may be several queries or keys, and is projected once.
            observe: receives the weights, [N_q, N_k, H].
        """
        q, k, v = self.q_proj(x), self.k_proj(source), self.v_proj(source)
        if gather is not None:
            of_x, of_source = gather
            q, k, v = gather_rows(q, of_x), gather_rows(k, of_source), gather_rows(v, of_source)
        q, k, v = map(self.split_heads, (q, k, v))
        if observe is not None:
            observe(weights_of_plan(q, k, plan, gather, (len(x), len(source))).detach())
        return self.out_proj(ragged_attention(q, k, v, plan, self.dropout if self.training else 0.0).flatten(1))

    def split_heads(self, x: Tensor) -> Tensor:
        """Returns [..., H, d/H] from [..., d]."""
        return x.unflatten(-1, (self.heads, -1))


class SentenceSelfAttention(MultiHeadAttention):
    """Multi-head self-attention of every token to the tokens of its own sentence."""

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d] from packed token states x [N, d]."""
        return self.attend(x, x, layout.plan(WithinSentences()))


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """Returns softmax(q kᵀ/√d_k) v under a mask, [T] eq. 1: [M, H, d_v].

    One product for all documents of a batch: a search step has few tokens, and sorting them by document would cost more
    than masking.

    Args:
        q: [M, H, d_k] queries.
        k: [R, H, d_k] keys.
        v: [R, H, d_v] values.
        mask: [M, R] True where a query attends to a key; every query attends to at least one.
    """
    q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))  # [1, H, M or R, ...]
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    return output.squeeze(0).transpose(0, 1)

"""Backend ``grouped``: PyTorch's attention to rows padded together in groups of similar length."""

from typing import Optional, Protocol, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt_fairseq.batch.attention_plan import AttentionPlan, Slots
from docnmt_fairseq.layers.attention_backends.base import ATTENTION_BACKENDS, AttentionBackend
from docnmt_fairseq.layers.precision import attention_precision, attention_type


class _WithSlots(Protocol):
    """What the backward pass is given."""

    slots: Slots


class _ToSlots(torch.autograd.Function):
    """Packed items [total, ...] to padded slots [slots, ...].

    What stands in padding is masked wherever it is used, so its gradient is zero and need not be added up: the
    gradient is a gather, too, and as such repeatable on every device.
    """

    @staticmethod
    def forward(ctx: _WithSlots, packed: Tensor, slots: Slots) -> Tensor:
        ctx.slots = slots
        return packed.index_select(0, slots.index)

    @staticmethod
    def backward(ctx: _WithSlots, gradient: Tensor) -> Tuple[Tensor, None]:
        slots = ctx.slots
        of_items = gradient.index_select(0, slots.slots)
        if len(slots.items) < slots.total:
            of_items = of_items.new_zeros(slots.total, *of_items.shape[1:]).index_copy_(0, slots.items, of_items)
        return of_items, None


class _FromSlots(torch.autograd.Function):
    """Padded slots [slots, ...] to the items that have one, [k, ...]."""

    @staticmethod
    def forward(ctx: _WithSlots, padded: Tensor, slots: Slots) -> Tensor:
        ctx.slots = slots
        return padded.index_select(0, slots.slots)

    @staticmethod
    def backward(ctx: _WithSlots, gradient: Tensor) -> Tuple[Tensor, None]:
        slots = ctx.slots
        of_slots = gradient.new_zeros(len(slots.index), *gradient.shape[1:])
        return of_slots.index_copy_(0, slots.slots, gradient), None


@ATTENTION_BACKENDS.register("grouped")
class GroupedAttention(AttentionBackend):
    """One call of ``scaled_dot_product_attention`` a group; on every device and type."""

    def serves(self, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """See :class:`AttentionBackend`; it serves everything."""
        return True

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, plan: AttentionPlan, dropout: float, scale: Optional[float]
    ) -> Tensor:
        """See :class:`AttentionBackend`."""
        sides = ((q, plan.queries), (k, plan.keys), (v, plan.keys))
        computing = attention_type(q)
        # a list of [b, w, H, d] each
        padded = (slots.split(_ToSlots.apply(x.to(computing), slots)) for x, slots in sides)
        outputs = []
        for padding, *block in zip(plan.keys.paddings, *padded):
            q_block, k_block, v_block = (x.transpose(1, 2) for x in block)  # [b, H, w, d]
            # In causal rows padding comes after every real query: the causal mask hides it already.
            hide = padding is not None and not plan.causal
            mask = ~padding[:, None, None, :] if hide else None  # [b, 1, 1, w_k]
            with attention_precision(q):
                output = F.scaled_dot_product_attention(
                    q_block, k_block, v_block, attn_mask=mask, dropout_p=dropout, is_causal=plan.causal, scale=scale
                )  # [b, H, w_q, d_v]
            outputs.append(output.transpose(1, 2).flatten(0, 1))
        return _FromSlots.apply(torch.cat(outputs), plan.queries).to(q.dtype)

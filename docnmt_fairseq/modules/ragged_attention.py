"""Scaled dot-product attention between packed rows, padded only here, in buckets of similar length."""

from typing import Optional

import torch.nn.functional as F
from torch import Tensor

from docnmt_fairseq.layout import AttentionPlan


def ragged_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: AttentionPlan,
    dropout: float = 0.0,
    scale: Optional[float] = None,
) -> Tensor:
    """Returns softmax(q kᵀ · scale) v of every row by itself, [T] eq. 1: [queries of the plan, H, d_v].

    Args:
        q: [N_q, H, d_k] packed queries.
        k: [N_k, H, d_k] packed keys.
        v: [N_k, H, d_v] packed values.
        plan: which queries see which keys.
        dropout: probability of dropping an attention weight, 0 outside training.
        scale: default 1/√d_k.
    """
    outputs = []
    for block in plan.blocks:
        batch, width = block.key.shape
        q_block = q.index_select(0, block.query.flatten()).view(batch, -1, *q.shape[1:]).transpose(1, 2)
        k_block = k.index_select(0, block.key.flatten()).view(batch, width, *k.shape[1:]).transpose(1, 2)
        v_block = v.index_select(0, block.key.flatten()).view(batch, width, *v.shape[1:]).transpose(1, 2)
        # In causal rows padding comes after every real query: the causal mask hides it already.
        hide = block.key_padding is not None and not plan.causal
        mask = ~block.key_padding[:, None, None, :] if hide else None  # [b, 1, 1, w_k]
        output = F.scaled_dot_product_attention(
            q_block, k_block, v_block, attn_mask=mask, dropout_p=dropout, is_causal=plan.causal, scale=scale
        )  # [b, H, w_q, d_v]
        outputs.append(output.transpose(1, 2))
    return plan.gather(outputs)

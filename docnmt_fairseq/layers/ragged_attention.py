"""Scaled dot-product attention between packed rows."""

from typing import Optional

from torch import Tensor

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.layers.attention_backends import backend_for


def ragged_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: AttentionPlan,
    dropout: float = 0.0,
    scale: Optional[float] = None,
) -> Tensor:
    """softmax(q kᵀ · scale) v of every row by itself, [T] eq. 1: [queries of the plan, H, d_v].

    Args:
        q: [N_q, H, d_k] packed queries.
        k: [N_k, H, d_k] packed keys.
        v: [N_k, H, d_v] packed values.
        plan: which queries see which keys.
        dropout: probability of dropping an attention weight, 0 outside training.
        scale: default 1/√d_k.
    """
    return backend_for(q, k, v).attend(q, k, v, plan, dropout, scale)

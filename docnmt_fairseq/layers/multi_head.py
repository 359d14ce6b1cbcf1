"""Multi-head attention between packed states, with the projections of fairseq's own."""

from typing import Callable, Optional, Tuple

import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.plans import WithinSentences
from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.ragged_attention import ragged_attention
from docnmt_fairseq.layers.recording import weights_of_plan
from docnmt_fairseq.layers.summation import rows_of


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V), V = K: the plan says who sees whom. Parameters are named as fairseq's.

    Args:
        embed_dim: d.
        heads: H, a divisor of d.
        dropout: of attention weights.
        source_dim: d_s, of what keys and values are made of; None: d.
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
        """Makes the projections; their order is that of parameters in checkpoints, and of what a seed gives them."""
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
        """What each query finds, [queries of the plan, d].

        Args:
            x: [N_q, d] packed states that queries are made of.
            source: [N_k, d_s] packed states that keys and values are made of.
            plan: which queries see which keys.
            gather: numbers of the states of ``x`` and of ``source`` that the plan's queries and keys are, where
                these are not all in their order: a state may be several queries or keys, and is projected once.
            observe: who wants to see the weights, [N_q, N_k, H].
        """
        q, k, v = self.q_proj(x), self.k_proj(source), self.v_proj(source)
        if gather is not None:
            of_x, of_source = gather
            q, k, v = rows_of(q, of_x), rows_of(k, of_source), rows_of(v, of_source)
        q, k, v = map(self.split_heads, (q, k, v))
        if observe is not None:
            observe(weights_of_plan(q, k, plan, gather, (len(x), len(source))).detach())
        return self.out_proj(ragged_attention(q, k, v, plan, self.dropout if self.training else 0.0).flatten(1))

    def split_heads(self, x: Tensor) -> Tensor:
        """[..., H, d/H] from [..., d]."""
        return x.unflatten(-1, (self.heads, -1))


class SentenceSelfAttention(MultiHeadAttention):
    """Every token attends to the tokens of its own sentence."""

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """[N, d] from packed token states x [N, d]."""
        return self.attend(x, x, layout.plan(WithinSentences()))


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """softmax(q kᵀ/√d_k) v over what each token sees, [T] eq. 1: [M, H, d_v].

    One product for all documents of a batch, masked: the tokens are the few that a step of the search adds, and to
    sort them by document would cost more than is wasted.

    Args:
        q: [M, H, d_k] queries.
        k: [R, H, d_k] keys.
        v: [R, H, d_v] values.
        mask: [M, R] True where a query sees a key; every query sees one at least.
        dropout: probability of dropping an attention weight, 0 outside training.
    """
    q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))  # [1, H, M or R, ...]
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    return output.squeeze(0).transpose(0, 1)

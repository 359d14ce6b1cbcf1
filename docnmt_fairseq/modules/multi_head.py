"""Multi-head attention between packed states, with the projections of fairseq's own."""

from typing import Callable, Optional, Tuple

import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.layout import AttentionPlan
from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.ragged_attention import ragged_attention
from docnmt_fairseq.modules.recording import weights_of_plan


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V), V = K: the plan says who sees whom. Parameters are named as fairseq's.

    Args:
        embed_dim: d.
        heads: H, a divisor of d.
        dropout: of attention weights.
    """

    def __init__(self, embed_dim: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.q_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.k_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.v_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.out_proj = projection(embed_dim, embed_dim, zero_bias=True)

    def attend(
        self,
        x: Tensor,
        memory: Tensor,
        plan: AttentionPlan,
        gather: Optional[Tuple[Tensor, Tensor]] = None,
        observe: Optional[Callable[[Tensor], None]] = None,
    ) -> Tensor:
        """Returns [queries of the plan, d].

        Args:
            x: [N_q, d] packed states that queries are made of.
            memory: [N_k, d] packed states that keys and values are made of.
            plan: which queries see which keys.
            gather: numbers of the states of ``x`` and of ``memory`` that the plan's queries and keys are, where
                these are not all in their order: a state may be several queries or keys, and is projected once.
            observe: who wants to see the weights, [N_q, N_k, H].
        """
        sides = (self.q_proj(x), self.k_proj(memory), self.v_proj(memory))
        if gather is not None:
            of_x, of_memory = gather
            sides = (side.index_select(0, items) for side, items in zip(sides, (of_x, of_memory, of_memory)))
        q, k, v = (side.unflatten(-1, (self.heads, -1)) for side in sides)
        if observe is not None:
            observe(weights_of_plan(q, k, plan, gather, (len(x), len(memory))).detach())
        return self.out_proj(ragged_attention(q, k, v, plan, self.dropout if self.training else 0.0).flatten(1))

    def attend_padded(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """Returns [..., m, d] from projected and padded queries [..., m, d], keys and values [..., n, d]; no dropout.

        Args:
            q, k, v: with the same leading dimensions.
            seen: [..., m, n], True where a query sees a key; every query sees one at least.
        """
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for y in (q, k, v))  # [..., H, m or n, d_k]
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=seen.unsqueeze(-3))
        return self.out_proj(output.transpose(-3, -2).flatten(-2))

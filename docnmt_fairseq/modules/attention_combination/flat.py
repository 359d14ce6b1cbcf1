"""Flat combination: one softmax over the states of all sources."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.modules.attention_combination.contract import (
    ATTENTION_COMBINATIONS,
    AttentionCombination,
    CombinationConfig,
)
from docnmt_fairseq.modules.attention_combination.scores import ATTENTION_SCORES, masked_softmax
from docnmt_fairseq.modules.initialisation import projection


@ATTENTION_COMBINATIONS.register("flat")
class FlatCombination(AttentionCombination):
    """c_i = Σ_k Σ_j α_ij^{(k)} U_c^{(k)} h_j^{(k)}, α over the states of all sources together ([L] eq. 6-7)."""

    def __init__(self, config: CombinationConfig):
        super().__init__()
        self.score = ATTENTION_SCORES[config.attention](
            config.query_dim, config.source_dims, config.score_dim, config.heads
        )
        widths = config.source_dims
        self.values = nn.ModuleList(projection(width, config.output_dim, zero_bias=True) for width in widths)
        self.dropout = nn.Dropout(config.dropout)

    def remember(self, states: List[Tensor]) -> List[Tensor]:
        """Returns keys and values of every source, [..., key_dim + d_c]."""
        return [
            torch.cat([self.score.key(of_source, number), self.values[number](of_source)], dim=-1)
            for number, of_source in enumerate(states)
        ]

    def forward(
        self, x: Tensor, memories: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Returns [S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        joined, padding = torch.cat(memories, dim=1), torch.cat(paddings, dim=1)
        keys, values = joined.split([self.score.key_dim, joined.size(-1) - self.score.key_dim], dim=-1)
        weights = masked_softmax(self.score(x, keys), padding)  # [S, 1, b, Σ n]
        shares = [part.sum(-1).mean(1) for part in weights.split([m.size(1) for m in memories], dim=-1)]
        return (self.dropout(weights) @ values[:, None]).squeeze(1), torch.stack(shares, dim=-1)

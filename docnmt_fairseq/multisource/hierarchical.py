"""Hierarchical combination: attention to every source separately, then to the resulting context vectors."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.multisource.flat import Sentinel, check_shared_projections, value_projections
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.multisource.separate import SeparateAttentions, absent
from docnmt_fairseq.multisource.state_sums import SoftmaxSum


@ATTENTION_COMBINATIONS.register("hierarchical")
class HierarchicalCombination(SeparateAttentions):
    """c_i = Σ_k β_i^{(k)} U_c^{(k)} c_i^{(k)}, β_i = softmax_k e(s_i, c_i^{(k)}) ([L] eq. 8-10).

    e has the form of the first attention's score, multi-head included ([L]: additive), and always a softmax: β is a
    distribution over sources also if each source is read by CA-ATT (e is additive after ``ca-att``). The sentinel
    ψ_i ⊙ s_i is one more c_i^{(k)}.
    """

    divides = True

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        score = ATTENTION_SCORES[ATTENTION_SCORES[config.combination_attention].over_contexts]
        widths = tuple(attention.width for attention in self.attentions)
        widths = (*widths, config.query_dim) if config.attention_sentinel else widths
        score_dim = config.output_dim if config.share_combination_projections else config.score_dim
        self.score = score(config.query_dim, widths, score_dim, config.heads)  # v_b, W_b, U_b
        check_shared_projections(config, self.score)
        self.sentinel = Sentinel(config.evidence_dim, config.query_dim) if config.attention_sentinel else None
        value_dim = config.query_dim if score.multi_head else config.output_dim
        shared = config.share_combination_projections
        self.values = None if shared else value_projections(score, widths, value_dim)  # U_c
        self.state_sum = SoftmaxSum(config.dropout)
        self.project = projection(value_dim, config.output_dim, zero_bias=True) if score.multi_head else nn.Identity()

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and β [S, b, K], with sentinel K + 1; see :class:`AttentionCombination`."""
        contexts, _ = self.attend(x, projected, paddings)
        hidden = [absent(padding).expand(x.shape[:2]) for padding in paddings]
        if self.sentinel is not None:
            contexts.append(self.sentinel(x, evidence))
            hidden.append(torch.zeros_like(hidden[0]))
        keys = [self.score.key(context, number) for number, context in enumerate(contexts)]
        values = keys if self.values is None else [project(c) for project, c in zip(self.values, contexts)]
        # Every query has its own contexts: one query per row.
        rows = [torch.stack(parts, dim=2).flatten(0, 1) for parts in (keys, values, hidden)]
        query = x.flatten(0, 1)[:, None]
        sums, beta = self.state_sum(query, self.score(query, rows[0]), *rows[1:])
        without_sources = rows[2].all(-1).view(*x.shape[:2], 1)
        context = self.project(sums.view(*x.shape[:2], -1)).masked_fill(without_sources, 0)
        return context, beta.mean(1).view(*x.shape[:2], -1)

"""Hierarchical combination: attention to every source by itself, then to what that gave."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig, sharing_problems
from docnmt_fairseq.multisource.flat import value_projections
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.multisource.sentinel import Sentinel
from docnmt_fairseq.multisource.source_attention import SeparateAttentions, absent
from docnmt_fairseq.multisource.state_sums import SoftmaxSum


@ATTENTION_COMBINATIONS.register("hierarchical")
class HierarchicalCombination(SeparateAttentions):
    """c_i = Σ_k β_i^{(k)} U_c^{(k)} c_i^{(k)}, β_i = softmax_k e(s_i, c_i^{(k)}) ([L] eq. 8-10).

    e is the score's own form ([L]: Bahdanau's), always with a softmax: β is a distribution over sources also where
    each is read by CA-ATT (by eq. 26 each: then Bahdanau's form). The sentinel ψ_i ⊙ s_i is one more c_i^{(k)}. Of
    multi-head attention the second step is multi-head, too.
    """

    divides = True

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        score = ATTENTION_SCORES[ATTENTION_SCORES[config.combination_attention].over_contexts]
        widths = tuple(attention.width for attention in self.attentions)
        widths = (*widths, config.query_dim) if config.attention_sentinel else widths
        score_dim = config.output_dim if config.share_combination_projections else config.score_dim
        self.score = score(config.query_dim, widths, score_dim, config.heads)  # v_b, W_b, U_b
        self.sentinel = Sentinel(config.evidence_dim, config.query_dim) if config.attention_sentinel else None
        value_dim = config.query_dim if score.multi_head else config.output_dim
        self.values = (
            None if config.share_combination_projections else value_projections(score, widths, value_dim)
        )  # U_c
        self.state_sum = SoftmaxSum(config.dropout)
        self.project = projection(value_dim, config.output_dim, zero_bias=True) if score.multi_head else nn.Identity()

    @classmethod
    def problems(cls, config: CombinationConfig) -> List[str]:
        """What cannot be built; see :class:`AttentionCombination`."""
        found = super().problems(config)
        return found or sharing_problems(ATTENTION_SCORES[config.combination_attention].over_contexts, config)

    @classmethod
    def reads_score_dim(cls, config: CombinationConfig) -> bool:
        """See :class:`AttentionCombination`; of the second step, shared projections are those of context vectors."""
        second = ATTENTION_SCORES[ATTENTION_SCORES[config.combination_attention].over_contexts]
        return super().reads_score_dim(config) or (second.own_space and not config.share_combination_projections)

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
        # One query a row: every query has contexts of its own.
        rows = [torch.stack(parts, dim=2).flatten(0, 1) for parts in (keys, values, hidden)]
        query = x.flatten(0, 1)[:, None]
        read, beta = self.state_sum(query, self.score(query, rows[0]), *rows[1:])
        # Where there is no source at all, there is nothing.
        context = self.project(read.view(*x.shape[:2], -1)).masked_fill(rows[2].all(-1).view(*x.shape[:2], 1), 0)
        return context, beta.mean(1).view(*x.shape[:2], -1)

"""Flat combination: one softmax over the states of all sources, or one sum of CA-ATT."""

from typing import Dict, List, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.multisource.base import (
    ATTENTION_COMBINATIONS,
    AttentionCombination,
    CombinationConfig,
    sharing_problems,
)
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES, AttentionScore
from docnmt_fairseq.multisource.sentinel import Sentinel
from docnmt_fairseq.multisource.source_attention import absent
from docnmt_fairseq.multisource.state_sums import state_sum_of


@ATTENTION_COMBINATIONS.register("flat")
class FlatCombination(AttentionCombination):
    """c_i = Σ_k Σ_j α_ij^{(k)} U_c^{(k)} h_j^{(k)}, α over the states of all sources together ([L] eq. 6-7).

    The sentinel is one more state. Of multi-head attention each head has its α, and a projection puts the heads
    together. With CA-ATT all projected states U_c h are in the one sum of [Z] eq. 23, whose v(c) does what a sentinel
    is for.
    """

    divides = True

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        score, widths = ATTENTION_SCORES[config.combination_attention], config.source_dims
        widths = (*widths, config.query_dim) if config.attention_sentinel else widths
        key_dims = config.key_dims() if config.chi_dim else widths
        self.config = config
        score_dim = config.output_dim if config.share_combination_projections else config.score_dim
        self.score = score(config.query_dim, key_dims, score_dim, config.heads)
        self.sentinel = Sentinel(config.evidence_dim, config.query_dim) if config.attention_sentinel else None
        value_dim = config.query_dim if score.multi_head else config.output_dim
        self.values = None if config.share_combination_projections else value_projections(score, widths, value_dim)
        self.state_sum = state_sum_of(self.score, config.query_dim, value_dim, config.dropout)
        self.project = projection(value_dim, config.output_dim, zero_bias=True) if score.multi_head else nn.Identity()

    @classmethod
    def problems(cls, config: CombinationConfig) -> List[str]:
        """What cannot be built; see :class:`AttentionCombination`."""
        found = super().problems(config)
        if found:
            return found
        found += sharing_problems(config.combination_attention, config)
        if config.attention_sentinel and ATTENTION_SCORES[config.combination_attention].context_free:
            reason = f"{config.combination_attention} in a flat combination has v(c) for that, and no softmax"
            found.append(f"--attention-sentinel: {reason}")
        return found

    @classmethod
    def reads_score_dim(cls, config: CombinationConfig) -> bool:
        """See :class:`AttentionCombination`; shared projections are those of context vectors."""
        return super().reads_score_dim(config) and not config.share_combination_projections

    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        """Keys and values of every source, [..., key_dim + d_v], or what is both, [..., key_dim]."""
        return [self.project_source(of_source, number) for number, of_source in enumerate(states)]

    def project_source(self, states: Tensor, number: int) -> Tensor:
        """What is attended to of the source of that number; the last is the sentinel's."""
        of_key, of_value = self.config.parts(states)
        keys = self.score.key(of_key, number)
        return keys if self.values is None else torch.cat([keys, self.values[number](of_value)], dim=-1)

    def split(self, one: Tensor) -> Tuple[Tensor, Tensor]:
        """Keys and values."""
        if self.values is None:
            return one, one
        return one.split([self.score.key_dim, one.size(-1) - self.score.key_dim], dim=-1)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K], with sentinel K + 1; see :class:`AttentionCombination`."""
        padding = torch.cat(paddings, dim=-1)
        keys, values = self.split(torch.cat(projected, dim=1))
        energies, lengths = self.score(x, keys), [one.size(1) for one in projected]  # [S, H, b, Σ n]
        own: Optional[Tensor] = None
        hidden: Optional[Tensor] = absent(padding)[..., None]
        if self.sentinel is not None:
            key, own = self.split(self.project_source(self.sentinel(x, evidence), len(projected)))
            of_own = self.score(x.flatten(0, 1)[:, None], key.flatten(0, 1)[:, None])  # [S · b, H, 1, 1]
            energies = torch.cat([energies, of_own.view(*x.shape[:2], -1, 1).transpose(1, 2)], dim=-1)
            padding, hidden, lengths = F.pad(padding, (0, 1)), None, [*lengths, 1]
        read, parts = self.state_sum(x, energies, values, padding, own)
        shares = [part.sum(-1).mean(1) for part in parts.split(lengths, dim=-1)]
        context = self.project(read)
        return context if hidden is None else context.masked_fill(hidden, 0), torch.stack(shares, dim=-1)

    def main_source(self) -> Dict[str, str]:
        """The names of what an attention to the first source has; see :class:`AttentionCombination`."""
        if not self.score.multi_head or self.values is None:
            return {}
        return {"q_proj": "score.query", "k_proj": "score.keys.0", "v_proj": "values.0", "out_proj": "project"}


def value_projections(score: Type[AttentionScore], widths: Tuple[int, ...], value_dim: int) -> nn.ModuleList:
    """U_c^{(k)} of every source, from its width to ``value_dim``, initialised as its kind of score has it.

    CA-ATT's are small: it adds up what they give, and the sum of a hundred unlike vectors is ten times as large.
    """
    gain = 2**-0.5 if score.multi_head else 0.1 if score.context_free else 1.0
    return nn.ModuleList(projection(width, value_dim, gain, zero_bias=not score.multi_head) for width in widths)

"""Combinations that attend to every source separately: ``concatenation``, ``parallel`` and ``serial``."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.base import ModulesOf, projection
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, AttentionCombination, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.multisource.state_sums import state_sum_of


class AttentionToOneSource(nn.Module):
    """c_i^{(k)} of one source: [L] eq. 1-3 with any score, or CA-ATT ([Z] eq. 23).

    Multi-head attention is that of Vaswani et al. (2017), with projections of values and of the result; other scores
    sum the states themselves.

    Args:
        config: configuration of the combination.
        source: number of the source.
        output_dim: width of a projection of the result; None: no projection.

    Attributes:
        width: width of the result.
    """

    def __init__(self, config: CombinationConfig, source: int, output_dim: Optional[int] = None):
        super().__init__()
        score, states = ATTENTION_SCORES[config.combination_attention], config.source_dims[source]
        self.config = config
        self.score = score(config.query_dim, (config.key_dims()[source],), config.score_dim, config.heads)
        values = config.query_dim if score.multi_head else states
        self.width = output_dim or values
        self.values = projection(states, values, gain=2**-0.5) if score.multi_head else nn.Identity()
        self.state_sum = state_sum_of(self.score, config.query_dim, values, config.dropout)
        projects = score.multi_head or output_dim is not None
        self.project = projection(values, self.width, zero_bias=True) if projects else nn.Identity()

    def project_source(self, states: Tensor) -> Tensor:
        """Keys and values [..., key_dim + d_v] of states [..., d_k]."""
        key_input, value_input = self.config.split_states(states)
        return torch.cat([self.score.key(key_input, 0), self.values(value_input)], dim=-1)

    def parts(self, x: Tensor, projected: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """Weighted sum [S, b, d_v], and the share of each state, [S, H, b, n]."""
        keys, values = projected.split([self.score.key_dim, projected.size(-1) - self.score.key_dim], dim=-1)
        return self.state_sum(x, self.score(x, keys), values, padding)

    def forward(self, x: Tensor, projected: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """c^{(k)} [S, b, width], zero without states, and the total share of states, [S, b]."""
        sums, parts = self.parts(x, projected, padding)
        return self.project(sums).masked_fill(absent(padding)[..., None], 0), parts.sum(-1).mean(1)


def absent(padding: Tensor) -> Tensor:
    """Mask of queries that see no state, [S, 1 or b], from padding [S, n] or [S, b, n]."""
    return padding.all(-1) if padding.dim() == 3 else padding.all(-1, keepdim=True)


class SeparateAttentions(AttentionCombination):
    """Base of combinations that first attend to every source separately.

    Args:
        config: configuration of the combination.
        output_dim: output width of each attention, see :class:`AttentionToOneSource`.
    """

    def __init__(self, config: CombinationConfig, output_dim: Optional[int] = None):
        super().__init__(config)
        numbers = range(len(config.source_dims))
        self.attentions = ModulesOf(AttentionToOneSource(config, number, output_dim) for number in numbers)

    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        """Keys and values of every source; see :class:`AttentionCombination`."""
        return [attention.project_source(of_source) for attention, of_source in zip(self.attentions, states)]

    def attend(self, x: Tensor, projected: List[Tensor], paddings: List[Tensor]) -> Tuple[List[Tensor], List[Tensor]]:
        """c^{(k)} [S, b, width] and the total share of states [S, b], for every source."""
        results = [attention(x, *source) for attention, *source in zip(self.attentions, projected, paddings)]
        return [context for context, _ in results], [share for _, share in results]

    def main_source(self) -> Dict[str, str]:
        """Parameter names of the first attention; see :class:`AttentionCombination`."""
        if not self.attentions[0].score.multi_head:
            return {}
        names = {"q_proj": "score.query", "k_proj": "score.keys.0", "v_proj": "values", "out_proj": "project"}
        return {name: f"attentions.0.{own}" for name, own in names.items()}


@ATTENTION_COMBINATIONS.register("concatenation")
class Concatenation(SeparateAttentions):
    """c_i = U [c_i^{(1)}; …; c_i^{(K)}] + b (Zoph and Knight 2016); ``whole``: without U and b ([L] sec. 3)."""

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        width = sum(attention.width for attention in self.attentions)
        self.project: nn.Module = nn.Identity()
        if config.concatenated_contexts == "whole":
            self.output_dim = width
        else:
            self.project = projection(width, config.output_dim, zero_bias=True)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        contexts, shares = self.attend(x, projected, paddings)
        return self.project(torch.cat(contexts, dim=-1)), torch.stack(shares, dim=-1)


@ATTENTION_COMBINATIONS.register("parallel")
class Parallel(SeparateAttentions):
    """c_i = Σ_k c_i^{(k)}, each projected to d_c (Libovický, Helcl and Mareček 2018, the parallel strategy)."""

    def __init__(self, config: CombinationConfig):
        super().__init__(config, config.output_dim)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        contexts, shares = self.attend(x, projected, paddings)
        return torch.stack(contexts).sum(0), torch.stack(shares, dim=-1)


@ATTENTION_COMBINATIONS.register("serial")
class Serial(SeparateAttentions):
    """c_i = Σ_k c_i^{(k)}; the query of source k is LayerNorm(s_i + Σ_{j<k} c_i^{(j)}), and s_i for the first source.

    The serial strategy of Libovický, Helcl and Mareček (2018): consecutive attention sub-layers with residual
    connections, the last of which is the caller's. It needs d_c = d_q. In pre-norm Transformers s_i is the normalised
    state, from which the later sub-layers start.
    """

    def __init__(self, config: CombinationConfig):
        super().__init__(config, config.output_dim)
        self.norms = nn.ModuleList(nn.LayerNorm(config.query_dim) for _ in config.source_dims[1:])

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        total, shares = torch.zeros_like(x), []
        for number, (attention, *source) in enumerate(zip(self.attentions, projected, paddings)):
            query = x if number == 0 else self.norms[number - 1](x + total)
            context, share = attention(query, *source)
            total = total + context
            shares.append(share)
        return total, torch.stack(shares, dim=-1)

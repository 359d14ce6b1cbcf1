"""Attention to one source with parameters of its own, and what combinations of such attentions have in common."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.modules import ModulesOf
from docnmt_fairseq.multisource.base import AttentionCombination, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.multisource.state_sums import state_sum_of


class AttentionToOneSource(nn.Module):
    """c_i^{(k)} of one source: [L] eq. 1-3 with any score, or CA-ATT ([Z] eq. 23).

    Multi-head attention is that of Vaswani et al. (2017), with a projection of the values and of the result; the
    others read the states as they are.

    Args:
        config: of the combination.
        source: number of the source.
        output_dim: width that results are projected to; None: they stay as they are.

    Attributes:
        width: of the result.
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
        """Keys and values [..., key_dim + d_v] of states [..., d_k], with what χ reads behind it, if so."""
        of_key, of_value = self.config.parts(states)
        return torch.cat([self.score.key(of_key, 0), self.values(of_value)], dim=-1)

    def parts(self, x: Tensor, one: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """What is read, [S, b, d_v], and which part of it comes from which state, [S, H, b, n]."""
        keys, values = one.split([self.score.key_dim, one.size(-1) - self.score.key_dim], dim=-1)
        return self.state_sum(x, self.score(x, keys), values, padding)

    def forward(self, x: Tensor, one: Tensor, padding: Tensor) -> Tuple[Tensor, Tensor]:
        """c^{(k)} [S, b, width], zero where there is no state, and the part that comes from states, [S, b]."""
        read, parts = self.parts(x, one, padding)
        return self.project(read).masked_fill(absent(padding)[..., None], 0), parts.sum(-1).mean(1)

    def names(self, prefix: str) -> Dict[str, str]:
        """The parameters by fairseq's names; see :meth:`AttentionCombination.main_source`."""
        if not self.score.multi_head:
            return {}
        own = {"q_proj": "score.query", "k_proj": "score.keys.0", "v_proj": "values", "out_proj": "project"}
        return {name: f"{prefix}.{part}" for name, part in own.items()}


def absent(padding: Tensor) -> Tensor:
    """Which queries see no state at all, [S, 1 or b], from padding [S, n] or [S, b, n]."""
    return padding.all(-1) if padding.dim() == 3 else padding.all(-1, keepdim=True)


class SeparateAttentions(AttentionCombination):
    """A combination that begins with an attention to every source by itself.

    Args:
        config: what it is built from.
        output_dim: of each attention, see :class:`AttentionToOneSource`.
    """

    def __init__(self, config: CombinationConfig, output_dim: Optional[int] = None):
        super().__init__(config)
        numbers = range(len(config.source_dims))
        self.attentions = ModulesOf(AttentionToOneSource(config, number, output_dim) for number in numbers)

    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        """Keys and values of every source; see :class:`AttentionCombination`."""
        return [attention.project_source(of_source) for attention, of_source in zip(self.attentions, states)]

    def attend(self, x: Tensor, projected: List[Tensor], paddings: List[Tensor]) -> Tuple[List[Tensor], List[Tensor]]:
        """c^{(k)} [S, b, width] and the part of it that comes from states [S, b], of every source."""
        found = [attend(x, *source) for attend, *source in zip(self.attentions, projected, paddings)]
        return [context for context, _ in found], [share for _, share in found]

    def main_source(self) -> Dict[str, str]:
        """The names of the first attention's parameters; see :class:`AttentionCombination`."""
        return self.attentions[0].names("attentions.0")

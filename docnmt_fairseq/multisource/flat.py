"""Flat combination: one softmax, or one CA-ATT sum, over the states of all sources."""

from typing import Dict, List, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, AttentionCombination, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES, AttentionScore
from docnmt_fairseq.multisource.separate import absent
from docnmt_fairseq.multisource.state_sums import state_sum_of


class Sentinel(nn.Module):
    """ψ_i ⊙ s_i, ψ_i = σ(W_y y_i + W_s s_{i−1} + b): lets the decoder attend to itself instead of any source.

    [L] eq. 4-5, after Lu et al. (2016).

    Args:
        evidence_dim: d_e, width of [y_i; s_{i−1}].
        query_dim: d_q, width of s_i.
    """

    def __init__(self, evidence_dim: int, query_dim: int):
        super().__init__()
        self.gate = projection(evidence_dim, query_dim, zero_bias=True)  # [W_y W_s], b

    def forward(self, x: Tensor, evidence: Tensor) -> Tensor:
        """[S, b, d_q] from s_i [S, b, d_q] and evidence [S, b, d_e]."""
        return torch.sigmoid(self.gate(evidence)) * x


def value_projections(score: Type[AttentionScore], widths: Tuple[int, ...], value_dim: int) -> nn.ModuleList:
    """U_c^{(k)} of every source, initialised as usual for the kind of score.

    Those of CA-ATT are small, since it adds up their outputs: the sum of a hundred independent vectors is ten times as
    large as each.
    """
    gain = 2**-0.5 if score.multi_head else 0.1 if score.context_free else 1.0
    return nn.ModuleList(projection(width, value_dim, gain, zero_bias=not score.multi_head) for width in widths)


def check_shared_projections(config: CombinationConfig, score: AttentionScore) -> None:
    """Raises an :class:`InputError` if projected keys of this width cannot serve as context vectors."""
    if config.share_combination_projections and not score.multi_head and score.key_dim != config.output_dim:
        raise InputError(
            f"--share-combination-projections: keys have width {score.key_dim}, context vectors {config.output_dim}"
        )


@ATTENTION_COMBINATIONS.register("flat")
class FlatCombination(AttentionCombination):
    """c_i = Σ_k Σ_j α_ij^{(k)} U_c^{(k)} h_j^{(k)}, α over the states of all sources together ([L] eq. 6-7).

    The sentinel is one more state. In multi-head attention each head has its own α, and a projection follows. With
    CA-ATT, all projected states U_c h are in the one sum of [Z] eq. 23, whose v(c) takes the role of a sentinel.
    """

    divides = True

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        score, widths = ATTENTION_SCORES[config.combination_attention], config.source_dims
        if config.attention_sentinel and score.context_free:
            raise InputError("--attention-sentinel: flat ca-att has no softmax; its v(c) takes the role of a sentinel")
        widths = (*widths, config.query_dim) if config.attention_sentinel else widths
        key_dims = config.key_dims() if config.chi_dim else widths
        self.config = config
        score_dim = config.output_dim if config.share_combination_projections else config.score_dim
        self.score = score(config.query_dim, key_dims, score_dim, config.heads)
        check_shared_projections(config, self.score)
        self.sentinel = Sentinel(config.evidence_dim, config.query_dim) if config.attention_sentinel else None
        value_dim = config.query_dim if score.multi_head else config.output_dim
        self.values = None if config.share_combination_projections else value_projections(score, widths, value_dim)
        self.state_sum = state_sum_of(self.score, config.query_dim, value_dim, config.dropout)
        self.project = projection(value_dim, config.output_dim, zero_bias=True) if score.multi_head else nn.Identity()

    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        """Keys and values [..., key_dim + d_v] of every source, or shared projections [..., key_dim]."""
        return [self.project_source(of_source, number) for number, of_source in enumerate(states)]

    def project_source(self, states: Tensor, number: int) -> Tensor:
        """Keys and values of one source; the sentinel has the last number."""
        key_input, value_input = self.config.split_states(states)
        keys = self.score.key(key_input, number)
        return keys if self.values is None else torch.cat([keys, self.values[number](value_input)], dim=-1)

    def split(self, projected: Tensor) -> Tuple[Tensor, Tensor]:
        """Keys and values."""
        if self.values is None:
            return projected, projected
        return projected.split([self.score.key_dim, projected.size(-1) - self.score.key_dim], dim=-1)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K], with sentinel K + 1; see :class:`AttentionCombination`."""
        padding = torch.cat(paddings, dim=-1)
        keys, values = self.split(torch.cat(projected, dim=1))
        energies, lengths = self.score(x, keys), [of_source.size(1) for of_source in projected]  # [S, H, b, Σ n]
        own: Optional[Tensor] = None
        hidden: Optional[Tensor] = absent(padding)[..., None]
        if self.sentinel is not None:
            key, own = self.split(self.project_source(self.sentinel(x, evidence), len(projected)))
            own_energies = self.score(x.flatten(0, 1)[:, None], key.flatten(0, 1)[:, None])  # [S · b, H, 1, 1]
            energies = torch.cat([energies, own_energies.view(*x.shape[:2], -1, 1).transpose(1, 2)], dim=-1)
            padding, hidden, lengths = F.pad(padding, (0, 1)), None, [*lengths, 1]
        sums, parts = self.state_sum(x, energies, values, padding, own)
        shares = [part.sum(-1).mean(1) for part in parts.split(lengths, dim=-1)]
        context = self.project(sums)
        return context if hidden is None else context.masked_fill(hidden, 0), torch.stack(shares, dim=-1)

    def main_source(self) -> Dict[str, str]:
        """Parameter names of the attention to the first source; see :class:`AttentionCombination`."""
        if not self.score.multi_head or self.values is None:
            return {}
        return {"q_proj": "score.query", "k_proj": "score.keys.0", "v_proj": "values.0", "out_proj": "project"}

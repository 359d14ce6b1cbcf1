"""Attention combinations: ``concatenation``, ``parallel``, ``serial``, ``flat`` and ``hierarchical``."""

from typing import Dict, List, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.base import ModulesOf, projection
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, AttentionCombination, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES, AttentionScore, state_sum_of


class AttentionToOneSource(nn.Module):
    """c_i^{(k)} of one source: [L] eq. 1-3 with any score, or CA-ATT ([Z] eq. 23).

    Multi-head attention is that of Vaswani et al. (2017), with projections of values and of the result; other scores
    sum the states themselves.

    Args:
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
        output_dim: output width of each attention, see :class:`AttentionToOneSource`.
    """

    def __init__(self, config: CombinationConfig, output_dim: Optional[int] = None):
        super().__init__(config)
        numbers = range(len(config.source_dims))
        self.attentions = ModulesOf(AttentionToOneSource(config, number, output_dim) for number in numbers)

    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        return [attention.project_source(of_source) for attention, of_source in zip(self.attentions, states)]

    def attend(self, x: Tensor, projected: List[Tensor], paddings: List[Tensor]) -> Tuple[List[Tensor], List[Tensor]]:
        """c^{(k)} [S, b, width] and the total share of states [S, b], for every source."""
        results = [attention(x, *source) for attention, *source in zip(self.attentions, projected, paddings)]
        return [context for context, _ in results], [share for _, share in results]

    def main_source(self) -> Dict[str, str]:
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
        total, shares = torch.zeros_like(x), []
        for number, (attention, *source) in enumerate(zip(self.attentions, projected, paddings)):
            query = x if number == 0 else self.norms[number - 1](x + total)
            context, share = attention(query, *source)
            total = total + context
            shares.append(share)
        return total, torch.stack(shares, dim=-1)


class Sentinel(nn.Module):
    """ψ_i ⊙ s_i, ψ_i = σ(W_y y_i + W_s s_{i−1} + b): lets the decoder attend to itself instead of any source.

    [L] eq. 4-5, after Lu et al. (2016).
    """

    def __init__(self, evidence_dim: int, query_dim: int):
        super().__init__()
        self.gate = projection(evidence_dim, query_dim, zero_bias=True)  # [W_y W_s], b

    def forward(self, x: Tensor, evidence: Tensor) -> Tensor:
        """[S, b, d_q] from s_i [S, b, d_q] and evidence [S, b, d_e]."""
        return torch.sigmoid(self.gate(evidence)) * x


class DividedCombination(AttentionCombination):
    """Base of combinations with one attention over the states, or the context vectors, of all sources."""

    divides = True

    def add_attention(
        self, config: CombinationConfig, score: Type[AttentionScore], key_dims: Tuple[int, ...], widths: Tuple[int, ...]
    ) -> None:
        """Creates score, sentinel, values U_c of each source, weighted sum and projection of the result.

        Values of CA-ATT start small, since it adds up their outputs: the sum of a hundred independent vectors is ten
        times as large as each.

        Raises:
            InputError: projected keys cannot serve as context vectors, because they have another width.
        """
        shared, extra = config.share_combination_projections, (config.query_dim,) * config.attention_sentinel
        score_dim, widths = config.output_dim if shared else config.score_dim, (*widths, *extra)
        self.score = score(config.query_dim, (*key_dims, *extra), score_dim, config.heads)
        if shared and not score.multi_head and self.score.key_dim != config.output_dim:
            raise InputError(
                f"--share-combination-projections: keys have width {self.score.key_dim}, "
                f"context vectors {config.output_dim}"
            )
        self.sentinel = Sentinel(config.evidence_dim, config.query_dim) if extra else None
        value_dim = config.query_dim if score.multi_head else config.output_dim
        gain = 2**-0.5 if score.multi_head else 0.1 if score.context_free else 1.0
        values = (projection(width, value_dim, gain, zero_bias=not score.multi_head) for width in widths)
        self.values = None if shared else nn.ModuleList(values)
        self.state_sum = state_sum_of(self.score, config.query_dim, value_dim, config.dropout)
        self.project = projection(value_dim, config.output_dim, zero_bias=True) if score.multi_head else nn.Identity()


@ATTENTION_COMBINATIONS.register("flat")
class FlatCombination(DividedCombination):
    """c_i = Σ_k Σ_j α_ij^{(k)} U_c^{(k)} h_j^{(k)}, α over the states of all sources together ([L] eq. 6-7).

    The sentinel is one more state. In multi-head attention each head has its own α, and a projection follows. With
    CA-ATT, all projected states U_c h are in the one sum of [Z] eq. 23, whose v(c) takes the role of a sentinel.
    """

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        score, self.config = ATTENTION_SCORES[config.combination_attention], config
        self.add_attention(config, score, config.key_dims(), config.source_dims)

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
        if not self.score.multi_head or self.values is None:
            return {}
        return {"q_proj": "score.query", "k_proj": "score.keys.0", "v_proj": "values.0", "out_proj": "project"}


@ATTENTION_COMBINATIONS.register("hierarchical")
class HierarchicalCombination(DividedCombination, SeparateAttentions):
    """c_i = Σ_k β_i^{(k)} U_c^{(k)} c_i^{(k)}, β_i = softmax_k e(s_i, c_i^{(k)}) ([L] eq. 8-10).

    e has the form of the first attention's score, multi-head included ([L]: additive), and always a softmax: β is a
    distribution over sources also if each source is read by CA-ATT (e is additive after ``ca-att``). The sentinel
    ψ_i ⊙ s_i is one more c_i^{(k)}.
    """

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        widths = tuple(attention.width for attention in self.attentions)
        over_contexts = ATTENTION_SCORES[config.combination_attention].over_contexts
        self.add_attention(config, ATTENTION_SCORES[over_contexts], widths, widths)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
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

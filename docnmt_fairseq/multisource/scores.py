"""Attention scores between decoder states and the states of a source, and weighted sums of the states.

A score keeps its two sides separate: keys depend on the source alone and are computed once per sentence. The scores
``ca-att…`` belong to CA-ATT ([Z] sec. 3.3), which has no softmax: the sigmoid of an energy is χ, the degree to which
the state does not depend on the query ([Z] eq. 26, or one of the forms of eq. 43).
"""

import math
from abc import ABC, abstractmethod
from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ChiGated, compose_all
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.precision import computing_type, without_autocast
from docnmt_fairseq.registry import Registry


class AttentionScore(nn.Module, ABC):
    """Contract: ``cls(query_dim, source_dims, score_dim, heads)``; the query side is shared by all sources.

    Class attributes:
        context_free: energies give χ of CA-ATT; otherwise their softmax gives attention weights.
        multi_head: values and results are projected, and each head reads its slice.
        over_contexts: name of the score for the second attention, over context vectors of several sources.

    Attributes:
        key_dim: width of a key.
        keys: key projection of each source.
    """

    context_free = False
    multi_head = False
    over_contexts = "bahdanau"
    key_dim: int
    keys: nn.ModuleList

    def key(self, states: Tensor, source: int) -> Tensor:
        """Keys [..., key_dim] of states [..., d_k] of source number ``source``."""
        return self.keys[source](states)

    @abstractmethod
    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """Energies e [S, H, b, n] of queries x [S, b, d_q] and keys [S, n, key_dim] of any source."""


ATTENTION_SCORES: Registry[AttentionScore] = Registry("attention score")


def products(queries: Tensor, keys: Tensor) -> Tensor:
    """Dot products [..., b, n] of queries [..., b, d] and keys [..., n, d], in float32 or float64.

    Half types lack the precision for exponents and, in float16, the range.
    """
    dtype = computing_type(queries.dtype)
    with without_autocast(queries):
        return queries.to(dtype) @ keys.to(dtype).transpose(-1, -2)


@ATTENTION_SCORES.register("bahdanau")
class AdditiveScore(AttentionScore):
    """e_ij = vᵀ tanh(W s_i + U^{(k)} h_j) ([L] eq. 1); v and W are shared, each source has its U.

    W and each U^{(k)} have a bias: [L] omits it in the equations, but has one in every projection. With the biases of
    U^{(k)}, a source can be preferred independently of its states.
    """

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = score_dim
        self.query = projection(query_dim, score_dim, zero_bias=True)  # W
        self.keys = nn.ModuleList(projection(width, score_dim, zero_bias=True) for width in source_dims)  # U^{(k)}
        self.energy = projection(score_dim, 1, bias=False)  # v

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, 1, b, n]."""
        return self.energy(torch.tanh(self.query(x)[:, :, None] + keys[:, None])).squeeze(-1)[:, None]


@ATTENTION_SCORES.register("luong")
class GeneralScore(AttentionScore):
    """e_ij = s_iᵀ W^{(k)} h_j ([Z] eq. 43; the general form of Luong et al. 2015); each source has its W."""

    over_contexts = "luong"

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = query_dim
        self.keys = nn.ModuleList(projection(width, query_dim, bias=False) for width in source_dims)  # W^{(k)}

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, 1, b, n]."""
        return products(x, keys)[:, None]


@ATTENTION_SCORES.register("dot-product")
class DotProductScore(AttentionScore):
    """e_ij = (W s_i)ᵀ U^{(k)} h_j / √(d_q/H) per head (Vaswani et al. 2017); W is shared."""

    multi_head = True
    over_contexts = "dot-product"

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = query_dim
        self.heads = heads
        self.query = projection(query_dim, query_dim, gain=2**-0.5)  # W
        self.keys = nn.ModuleList(projection(width, query_dim, gain=2**-0.5) for width in source_dims)  # U^{(k)}

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, H, b, n]."""
        q, k = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(x), keys))  # [S, H, ·, d_q/H]
        return products(q / math.sqrt(q.size(-1)), k)


@ATTENTION_SCORES.register("ca-att")
class LinearScore(AttentionScore):
    """e_ij = w^{(k)}·h_j + u·s_i + b, χ = σ(e) ([Z] eq. 26); u and b are shared."""

    context_free = True

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = 1  # what a state adds to its energy
        self.query = projection(query_dim, 1, zero_bias=True)  # u, b
        self.keys = nn.ModuleList(projection(width, 1, bias=False) for width in source_dims)  # w^{(k)}

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, 1, b, n]."""
        return (self.query(x) + keys.transpose(1, 2))[:, None]


@ATTENTION_SCORES.register("ca-att-bahdanau")
class ContextFreeAdditiveScore(AdditiveScore):
    """χ = σ(vᵀ tanh(W s_i + U^{(k)} h_j)) ([Z] eq. 43)."""

    context_free = True


@ATTENTION_SCORES.register("ca-att-luong")
class ContextFreeGeneralScore(GeneralScore):
    """χ = σ(s_iᵀ W^{(k)} h_j) ([Z] eq. 43)."""

    context_free = True


def over_heads(padding: Tensor) -> Tensor:
    """Padding [S, n] or [S, b, n], broadcastable to energies: [S, 1, 1 or b, n]."""
    return padding[:, None] if padding.dim() == 3 else padding[:, None, None]


def masked_softmax(energies: Tensor, padding: Tensor) -> Tensor:
    """Softmax over the last dimension of [S, H, b, n] in float32 or float64; zero at padding and for empty rows."""
    hidden, energies = over_heads(padding), energies.to(computing_type(energies.dtype))
    weights = energies.masked_fill(hidden, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(hidden, 0)


class SoftmaxSum(nn.Module):
    """Σ_j α_ij h_j with α = softmax(energies) ([L] eq. 2-3); each head sums its slice of h. Dropout applies to α."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, energies: Tensor, values: Tensor, padding: Tensor, own: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Sums [S, b, d_v], and the share of each state in them, [S, H, b, n].

        Args:
            x: [S, b, d_q] queries.
            energies: [S, H, b, n].
            values: [S, n, d_v].
            padding: [S, n] or [S, b, n], True at padding.
            own: [S, b, d_v] value of one additional state per query, last in energies and padding; not with CA-ATT.
        """
        weights = masked_softmax(energies, padding)
        used, heads = self.dropout(weights).to(values.dtype), (energies.size(1), -1)
        sums = used[..., : values.size(1)] @ values.unflatten(-1, heads).transpose(1, 2)  # [S, H, b, d_v/H]
        if own is not None:
            sums = sums + used[..., -1:] * own.unflatten(-1, heads).transpose(1, 2)
        return sums.transpose(1, 2).flatten(2), weights


class ContextFreeSum(SoftmaxSum, ChiGated):
    """CA-ATT: v(c) Σ_i χ(s_i, c) + Σ_i (1 − χ(s_i, c)) s_i, v(c) = tanh(W_h c + b_h), χ = σ(energy) ([Z] eq. 23-26).

    The sums run over all states, as in the equation: without a mean, vectors grow with the number of states. Padding
    and dropped states are in neither sum. The share of a state is (1 − χ)/n for n states; the rest up to 1 is the share
    of v(c), the mean χ, which is recorded per query (NaN without states).

    v starts at zero. The sum depends on c through Σ_i χ_i W_h, which a recurrent decoder multiplies by itself at every
    step: with the usual initial values, gradients overflow when it reads a hundred states.

    Args:
        score: score that gives the energies; not a submodule of the sum.
    """

    def __init__(self, score: AttentionScore, query_dim: int, value_dim: int, dropout: float):
        super().__init__(dropout)
        self._score = (score,)  # a tuple, so that it is not registered as a submodule
        self.free = projection(query_dim, value_dim, zero=True)  # W_h, b_h

    def forward(
        self, x: Tensor, energies: Tensor, values: Tensor, padding: Tensor, own: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        chi = energies.to(computing_type(energies.dtype)).sigmoid()
        present = (~over_heads(padding)).to(chi.dtype).expand_as(chi)
        self.show(lambda: (present * chi).sum(-1) / present.sum(-1))
        v = torch.tanh(self.free(x))
        vectors = compose_all(chi.squeeze(1), v, values, self.dropout(present).squeeze(1)).to(values.dtype)
        return vectors, present * (1 - chi) / present.sum(-1, keepdim=True).clamp_min(1)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters of the score; see :class:`ChiGated`. The s_i come from other layers."""
        return self._score[0].parameters()


def state_sum_of(score: AttentionScore, query_dim: int, value_dim: int, dropout: float) -> SoftmaxSum:
    """Weighted sum that belongs to a score; see :class:`ContextFreeSum` for the widths."""
    return ContextFreeSum(score, query_dim, value_dim, dropout) if score.context_free else SoftmaxSum(dropout)

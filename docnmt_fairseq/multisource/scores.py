"""How well a decoder state and the states of a source go together, chosen by name.

A score has its two sides apart: what depends on the source alone is computed once a sentence. Names that begin with
``ca-att`` are those of CA-ATT ([Z] sec. 3.3), where the energy of a state is not compared with those of others: its σ
is χ, how little the state depends on the query ([Z] eq. 26, or one of the forms of eq. 43).
"""

import math
from typing import Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.precision import computing_type, without_autocast
from docnmt_fairseq.registry import Registry


class AttentionScore(nn.Module):
    """Contract: ``cls(query_dim, source_dims, score_dim, heads)``; the query's side is shared by all sources.

    Class attributes:
        context_free: whether energies make χ of CA-ATT; else a softmax over them gives the weights of states.
        multi_head: whether values are projected, read by each head in its part, and projected together.
        over_contexts: the score that weighs context vectors of several sources against each other.
        own_space: whether it is computed in a space of its own, of width ``score_dim``.

    Attributes:
        key_dim: width of a key.
        keys: the map from the states of each source to keys.
    """

    context_free = False
    multi_head = False
    over_contexts = "bahdanau"
    own_space = False
    key_dim: int
    keys: nn.ModuleList

    @classmethod
    def width_of_keys(cls, query_dim: int, score_dim: int) -> int:
        """``key_dim`` of a score of these sizes: that of queries, where a score has no space of its own."""
        return query_dim

    def key(self, states: Tensor, source: int) -> Tensor:
        """Keys [..., key_dim] of states [..., d_k] of the source of that number."""
        return self.keys[source](states)

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """Energies e [S, H, b, n] of queries x [S, b, d_q] and keys [S, n, key_dim] of any source."""
        raise NotImplementedError


ATTENTION_SCORES: Registry[AttentionScore] = Registry("attention score")


def products(queries: Tensor, keys: Tensor) -> Tensor:
    """[..., b, n] of queries [..., b, d] and keys [..., n, d] in float32 at least, as the exponents that they become.

    Half types have not the digits for these and, float16, not the range.
    """
    dtype = computing_type(queries.dtype)
    with without_autocast(queries):
        return queries.to(dtype) @ keys.to(dtype).transpose(-1, -2)


@ATTENTION_SCORES.register("bahdanau")
class AdditiveScore(AttentionScore):
    """e_ij = vᵀ tanh(W s_i + U^{(k)} h_j) ([L] eq. 1); v, W are shared by the sources, each has its U.

    W and each U^{(k)} have a bias: [L] leaves them out of its equations, but has one at every projection. By those of
    U^{(k)} a source can be preferred whatever its states are.
    """

    own_space = True

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = self.width_of_keys(query_dim, score_dim)
        self.query = projection(query_dim, score_dim, zero_bias=True)  # W
        self.keys = nn.ModuleList(projection(width, score_dim, zero_bias=True) for width in source_dims)  # U^{(k)}
        self.energy = projection(score_dim, 1, bias=False)  # v

    @classmethod
    def width_of_keys(cls, query_dim: int, score_dim: int) -> int:
        """``score_dim``: the space that scores are computed in."""
        return score_dim

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, 1, b, n]."""
        return self.energy(torch.tanh(self.query(x)[:, :, None] + keys[:, None])).squeeze(-1)[:, None]


@ATTENTION_SCORES.register("luong")
class GeneralScore(AttentionScore):
    """e_ij = s_iᵀ W^{(k)} h_j ([Z] eq. 43; the general form of Luong et al. 2015); each source has its W."""

    over_contexts = "luong"

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = self.width_of_keys(query_dim, score_dim)
        self.keys = nn.ModuleList(projection(width, query_dim, bias=False) for width in source_dims)  # W^{(k)}

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, 1, b, n]."""
        return products(x, keys)[:, None]


@ATTENTION_SCORES.register("dot-product")
class DotProductScore(AttentionScore):
    """e_ij = (W s_i)ᵀ U^{(k)} h_j / √(d_q/H) in each head's part (Vaswani et al. 2017); W is shared by the sources."""

    multi_head = True
    over_contexts = "dot-product"

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = self.width_of_keys(query_dim, score_dim)
        self.heads = heads
        self.query = projection(query_dim, query_dim, gain=2**-0.5)  # W
        self.keys = nn.ModuleList(projection(width, query_dim, gain=2**-0.5) for width in source_dims)  # U^{(k)}

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """[S, H, b, n]."""
        q, k = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (self.query(x), keys))  # [S, H, ·, d_q/H]
        return products(q / math.sqrt(q.size(-1)), k)


@ATTENTION_SCORES.register("ca-att")
class LinearScore(AttentionScore):
    """e_ij = w^{(k)}·h_j + u·s_i + b, of which σ is χ ([Z] eq. 26); u, b are shared by the sources."""

    context_free = True

    def __init__(self, query_dim: int, source_dims: Tuple[int, ...], score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = self.width_of_keys(query_dim, score_dim)
        self.query = projection(query_dim, 1, zero_bias=True)  # u, b
        self.keys = nn.ModuleList(projection(width, 1, bias=False) for width in source_dims)  # w^{(k)}

    @classmethod
    def width_of_keys(cls, query_dim: int, score_dim: int) -> int:
        """1: what a state adds to its energy is a number."""
        return 1

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

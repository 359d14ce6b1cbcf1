"""Attention scores between decoder states and the states of a source.

A score keeps its two sides separate: keys depend on the source alone and are computed once per sentence. The scores
``ca-att…`` belong to CA-ATT ([Z] sec. 3.3), which has no softmax: the sigmoid of an energy is χ, the degree to which
the state does not depend on the query ([Z] eq. 26, or one of the forms of eq. 43).
"""

import math
from typing import Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.precision import computing_type, without_autocast
from docnmt_fairseq.registry import Registry


class AttentionScore(nn.Module):
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

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """Energies e [S, H, b, n] of queries x [S, b, d_q] and keys [S, n, key_dim] of any source."""
        raise NotImplementedError


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

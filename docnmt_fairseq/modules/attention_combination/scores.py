"""How well a decoder state and the states of a source go together, chosen by name.

A score has its two sides apart: what depends on the source alone is computed once a sentence.
"""

from typing import Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.registry import Registry


class AttentionScore(nn.Module):
    """Contract: ``cls(query_dim, source_dims, score_dim, heads)``; the query's side is shared by all sources.

    Attributes:
        key_dim: width of a key.
    """

    key_dim: int

    def key(self, states: Tensor, source: int) -> Tensor:
        """Returns keys [..., key_dim] of states [..., d_k] of the source of that number."""
        raise NotImplementedError

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """Returns energies e [S, H, b, n] of queries x [S, b, d_q] and keys [S, n, key_dim] of any source."""
        raise NotImplementedError


ATTENTION_SCORES: Registry[AttentionScore] = Registry("attention score")


@ATTENTION_SCORES.register("bahdanau")
class AdditiveScore(AttentionScore):
    """e_ij = vᵀ tanh(W s_i + U^{(k)} h_j) ([L] eq. 1); v, W are shared by the sources, each has its U."""

    def __init__(self, query_dim: int, source_dims: "tuple[int, ...]", score_dim: int, heads: int = 1):
        super().__init__()
        self.key_dim = score_dim
        self.query = projection(query_dim, score_dim, zero_bias=True)  # W
        self.keys = nn.ModuleList(nn.Linear(width, score_dim, bias=False) for width in source_dims)  # U^{(k)}
        self.energy = nn.Linear(score_dim, 1, bias=False)  # v
        for linear in (*self.keys, self.energy):
            nn.init.xavier_uniform_(linear.weight)

    def key(self, states: Tensor, source: int) -> Tensor:
        """Returns U^{(k)} h, [..., score_dim]."""
        return self.keys[source](states)

    def forward(self, x: Tensor, keys: Tensor) -> Tensor:
        """Returns [S, 1, b, n]."""
        return self.energy(torch.tanh(self.query(x)[:, :, None] + keys[:, None])).squeeze(-1)[:, None]


def masked_softmax(energies: Tensor, padding: Optional[Tensor]) -> Tensor:
    """Returns the softmax over the last dimension of [S, H, b, n]; zero at padding [S, n], and where all is padding."""
    if padding is None:
        return energies.softmax(-1)
    hidden = padding[:, None, None]
    weights = energies.masked_fill(hidden, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(hidden, 0)

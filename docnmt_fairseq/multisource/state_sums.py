"""Weighted sums of states, from their energies: softmax attention, or the sum of CA-ATT."""

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ChiGated, compose_all
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.precision import computing_type
from docnmt_fairseq.multisource.scores import AttentionScore


def over_heads(padding: Tensor) -> Tensor:
    """Padding [S, n] or [S, b, n], broadcastable to energies: [S, 1, 1 or b, n]."""
    return padding[:, None] if padding.dim() == 3 else padding[:, None, None]


def masked_softmax(energies: Tensor, padding: Tensor) -> Tensor:
    """Softmax over the last dimension of [S, H, b, n] in float32 or float64; zero at padding and for empty rows."""
    hidden, energies = over_heads(padding), energies.to(computing_type(energies.dtype))
    weights = energies.masked_fill(hidden, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(hidden, 0)


class StateSum(nn.Module):
    """Contract of weighted sums; dropout applies to states, like dropout of attention weights."""

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
        raise NotImplementedError


class SoftmaxSum(StateSum):
    """Σ_j α_ij h_j with α = softmax(energies) ([L] eq. 2-3); each head sums its slice of h."""

    def forward(
        self, x: Tensor, energies: Tensor, values: Tensor, padding: Tensor, own: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_v] and α [S, H, b, n]; see :class:`StateSum`."""
        weights = masked_softmax(energies, padding)
        used, heads = self.dropout(weights).to(values.dtype), (energies.size(1), -1)
        sums = used[..., : values.size(1)] @ values.unflatten(-1, heads).transpose(1, 2)  # [S, H, b, d_v/H]
        if own is not None:
            sums = sums + used[..., -1:] * own.unflatten(-1, heads).transpose(1, 2)
        return sums.transpose(1, 2).flatten(2), weights


class ContextFreeSum(StateSum, ChiGated):
    """CA-ATT: v(c) Σ_i χ(s_i, c) + Σ_i (1 − χ(s_i, c)) s_i, v(c) = tanh(W_h c + b_h), χ = σ(energy) ([Z] eq. 23-26).

    The sums run over all states, as in the equation: without a mean, vectors grow with the number of states. Padding
    and dropped states are in neither sum. The share of a state is (1 − χ)/n for n states; the rest up to 1 is the share
    of v(c), the mean χ, which is recorded per query (NaN without states).

    v starts at zero. The sum depends on c through Σ_i χ_i W_h, which a recurrent decoder multiplies by itself at every
    step: with the usual initial values, gradients overflow when it reads a hundred states.

    Args:
        score: score that gives the energies; not a submodule of the sum.
        query_dim: width of c.
        value_dim: width of s_i and v(c).
        dropout: see :class:`StateSum`.
    """

    def __init__(self, score: AttentionScore, query_dim: int, value_dim: int, dropout: float):
        super().__init__(dropout)
        self._score = (score,)  # a tuple, so that it is not registered as a submodule
        self.free = projection(query_dim, value_dim, zero=True)  # W_h, b_h

    def forward(
        self, x: Tensor, energies: Tensor, values: Tensor, padding: Tensor, own: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_v] and (1 − χ)/n [S, 1, b, n]; see :class:`StateSum`."""
        chi = energies.to(computing_type(energies.dtype)).sigmoid()
        present = (~over_heads(padding)).to(chi.dtype).expand_as(chi)
        self.show(lambda: (present * chi).sum(-1) / present.sum(-1))
        v = torch.tanh(self.free(x))
        vectors = compose_all(chi.squeeze(1), v, values, self.dropout(present).squeeze(1)).to(values.dtype)
        return vectors, present * (1 - chi) / present.sum(-1, keepdim=True).clamp_min(1)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters of the score; see :class:`ChiGated`. The s_i come from other layers."""
        return self._score[0].parameters()


def state_sum_of(score: AttentionScore, query_dim: int, value_dim: int, dropout: float) -> StateSum:
    """Weighted sum that belongs to a score; see :class:`ContextFreeSum` for the widths."""
    return ContextFreeSum(score, query_dim, value_dim, dropout) if score.context_free else SoftmaxSum(dropout)

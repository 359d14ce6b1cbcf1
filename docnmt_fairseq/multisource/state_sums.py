"""What a query gets from states whose energies are known: their weighted mean, or CA-ATT's sum."""

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ChiGated, compose_all
from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.precision import computing_type
from docnmt_fairseq.multisource.scores import AttentionScore


def over_heads(padding: Tensor) -> Tensor:
    """Padding [S, n] or [S, b, n] in the shape of energies: [S, 1, 1 or b, n]."""
    return padding[:, None] if padding.dim() == 3 else padding[:, None, None]


def masked_softmax(energies: Tensor, padding: Tensor) -> Tensor:
    """The softmax over the last dimension of [S, H, b, n]; zero at padding, and where all of it is padding.

    In float32 at least, as is what is computed of the weights.
    """
    hidden, energies = over_heads(padding), energies.to(computing_type(energies.dtype))
    weights = energies.masked_fill(hidden, torch.finfo(energies.dtype).min).softmax(-1)
    return weights.masked_fill(hidden, 0)


class StateSum(nn.Module):
    """Contract: the dropout is of states, as attention weights have it."""

    def __init__(self, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, energies: Tensor, values: Tensor, padding: Tensor, own: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Vectors [S, b, d_v], and which part of each comes from which state, [S, H, b, n].

        Args:
            x: [S, b, d_q] queries.
            energies: [S, H, b, n].
            values: [S, n, d_v].
            padding: [S, n] or [S, b, n], True at padding.
            own: [S, b, d_v] the value of one more state, which each query has for itself: energies and padding have
                it last. Not with CA-ATT.
        """
        raise NotImplementedError


class SoftmaxSum(StateSum):
    """Σ_j α_ij h_j, α the softmax of the energies ([L] eq. 2-3); with several heads each in its part of h."""

    def forward(
        self, x: Tensor, energies: Tensor, values: Tensor, padding: Tensor, own: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_v] and α [S, H, b, n]; see :class:`StateSum`."""
        weights = masked_softmax(energies, padding)
        used, parts = self.dropout(weights).to(values.dtype), (energies.size(1), -1)
        of_states = used[..., : values.size(1)] @ values.unflatten(-1, parts).transpose(1, 2)  # [S, H, b, d_v/H]
        if own is not None:
            of_states = of_states + used[..., -1:] * own.unflatten(-1, parts).transpose(1, 2)
        return of_states.transpose(1, 2).flatten(2), weights


class ContextFreeSum(StateSum, ChiGated):
    """CA-ATT: v(c) Σ_i χ(s_i, c) + Σ_i (1 − χ(s_i, c)) s_i, v(c) = tanh(W_h c + b_h), χ = σ(energy) ([Z] eq. 23-26).

    The sums run over all states that are there, as the equation says: no mean is taken, so that vectors grow with the
    number of states. Padding is in neither sum, and of no state nothing remains. A state that dropout drops is in
    neither sum. The part of a state is (1 − χ)/n of n states; what is missing from 1 is the part of v(c), the mean χ:
    this one is reported, a number a query, NaN where it sees nothing.

    v begins as zero: the sum depends on c by Σ_i χ_i W_h, which a recurrent decoder multiplies with itself at every
    step; from the usual initial values gradients are infinite where it reads a hundred states.

    Args:
        score: gives the energies, and so χ; it is not a part of the sum.
        query_dim: of c.
        value_dim: of s_i and v(c).
        dropout: see :class:`StateSum`.
    """

    def __init__(self, score: AttentionScore, query_dim: int, value_dim: int, dropout: float):
        super().__init__(dropout)
        self._score = (score,)  # in a tuple, since a module would take it for its own
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
        """The parameters of the score; see :class:`ChiGated`. The vectors are v(c): s_i come from elsewhere."""
        return self._score[0].parameters()


def state_sum_of(score: AttentionScore, query_dim: int, value_dim: int, dropout: float) -> StateSum:
    """The sum of states by that score; see :class:`ContextFreeSum` for the widths."""
    return ContextFreeSum(score, query_dim, value_dim, dropout) if score.context_free else SoftmaxSum(dropout)

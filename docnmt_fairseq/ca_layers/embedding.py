"""CA-EM: the embedding of one symbol, weighed against a vector of all; and embeddings that χ alone reads."""

from typing import Iterator, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ChiGated, compose
from docnmt_fairseq.layers.precision import Embedding, computing_type


class ContextAwareEmbedding(Embedding, ChiGated):
    """w = χ(w) v_0 + (1 − χ(w)) w′, χ(w) = σ(θᵀ w_σ) ([Z] eq. 12, 19 and 22, Fig. 2 a).

    Its ``weight`` is w′. The padding's vector is zero, as that of any embedding. v_0 begins at the scale of w′.

    Args:
        symbols: V.
        dim: n, width of w′ and v_0.
        chi_dim: m, width of w_σ.
        padding: number of the padding.
        unknown: number of the symbol that stands for those not in the vocabulary: its χ is 1 (eq. 21); None: none.
    """

    def __init__(self, symbols: int, dim: int, chi_dim: int, padding: int, unknown: Optional[int] = None):
        super().__init__(symbols, dim, padding)
        self.padding_idx: int = padding
        self.unknown = unknown
        self.for_chi = Embedding(symbols, chi_dim)  # w_σ
        self.theta = nn.Parameter(torch.empty(chi_dim).normal_(0, chi_dim**-0.5))
        self.v_0 = nn.Parameter(torch.empty(dim).normal_(0, dim**-0.5))

    def forward(self, input: Tensor) -> Tensor:
        """[..., n] of numbers [...]."""
        w = super().forward(input)
        dtype = computing_type(w.dtype)
        score = self.for_chi(input).to(dtype) @ self.theta.to(dtype)
        if self.unknown is not None:
            score = score.masked_fill(input.eq(self.unknown), torch.inf)
        mixed = compose(self.indicator(score)[..., None], self.v_0, w).to(w.dtype)
        return mixed.masked_fill(input.eq(self.padding_idx)[..., None], 0)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """θ and w_σ; see :class:`ChiGated`."""
        yield self.theta
        yield from self.for_chi.parameters()


class ChiEmbedding(Embedding, ChiGated):
    """w_σ of symbols for a χ that is computed elsewhere ([Z] sec. 3.3, the last paragraph): all of it belongs to χ."""

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """w_σ; see :class:`ChiGated`."""
        return self.parameters()

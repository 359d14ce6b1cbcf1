"""CA-BSFE: one vector of a bag of symbols, each weighed by how much it says by itself."""

from typing import Iterator, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.decomposition import ChiGated, compose
from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.precision import computing_type
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoder


class BagOfFeatures(ChiGated):
    """s = v_0 Σ_w χ(w) + Σ_w (1 − χ(w)) w, χ(w) = σ(θᵀ w_σ) ([Z] eq. 19-20).

    Args:
        dim: n, width of w.
        chi_dim: m, width of w_σ.
    """

    def __init__(self, dim: int, chi_dim: int):
        super().__init__()
        self.theta = nn.Parameter(torch.empty(chi_dim).normal_(0, chi_dim**-0.5))
        self.v_0 = nn.Parameter(torch.empty(dim).normal_(0, dim**-0.5))

    def add_up(self, w: Tensor, w_sigma: Tensor, rows: Ragged, unknown: Optional[Tensor] = None) -> Tensor:
        """s of every row, [R, n].

        Args:
            w: [N, n] of the packed symbols.
            w_sigma: [N, m].
            rows: the bags.
            unknown: [N] True where χ = 1, whatever w and w_σ are (eq. 21).
        """
        dtype = computing_type(w_sigma.dtype)
        score = w_sigma.to(dtype) @ self.theta.to(dtype)
        if unknown is not None:
            score = score.masked_fill(unknown, torch.inf)
        return rows.sum(compose(self.indicator(score)[:, None], self.v_0, w)).to(w.dtype)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """θ; see :class:`ChiGated`."""
        yield self.theta


class SparseFeatures(BagOfFeatures):
    """:class:`BagOfFeatures` over numbers of symbols, each with an embedding w and another w_σ.

    Args:
        symbols: V. Numbers outside of 0 … V − 1 are out of vocabulary.
        dim: n, width of w.
        chi_dim: m, width of w_σ.
        unknown: a number among them that is out of vocabulary, too; None: none.
    """

    def __init__(self, symbols: int, dim: int, chi_dim: int, unknown: Optional[int] = None):
        super().__init__(dim, chi_dim)
        self.symbols = symbols
        self.unknown = unknown
        self.words = nn.Embedding(symbols, dim)  # w
        self.words_for_chi = nn.Embedding(symbols, chi_dim)  # w_σ
        nn.init.normal_(self.words.weight, std=dim**-0.5)

    def forward(self, tokens: Tensor, rows: Ragged) -> Tensor:
        """[R, n] from packed tokens [N]."""
        unknown = (tokens < 0) | (tokens >= self.symbols)
        known = tokens.masked_fill(unknown, 0)
        if self.unknown is not None:
            unknown = unknown | (tokens == self.unknown)
        return self.add_up(self.words(known), self.words_for_chi(known), rows, unknown)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """θ and w_σ; see :class:`ChiGated`."""
        yield self.theta
        yield from self.words_for_chi.parameters()


@SENTENCE_ENCODERS.register("ca-bsfe")
class BagOfStates(BagOfFeatures, SentenceEncoder):
    """:class:`BagOfFeatures` over token states: w is the state x, and w_σ = W_σ x + b, m the width of a head.

    ([Z] has an embedding of each symbol in both places; a state is not looked up, so a linear map makes w_σ of it.)
    A sum, as the equation has it: it grows with the sentence.
    """

    def __init__(self, embed_dim: int, heads: int):
        super().__init__(embed_dim, embed_dim // heads)
        self.for_chi = projection(embed_dim, embed_dim // heads, zero_bias=True)  # W_σ, b

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        """[R, d]; see :class:`SentenceEncoder`."""
        return self.add_up(x, self.for_chi(x), sentences)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """θ, W_σ and b; see :class:`ChiGated`."""
        yield self.theta
        yield from self.for_chi.parameters()

"""Context-aware embeddings: CA-EM embeds one symbol, CA-BSFE a bag of symbols or states."""

from typing import Iterator, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.decomposition import ChiGated, compose
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.precision import Embedding, computing_type
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoder


class ContextAwareEmbedding(Embedding, ChiGated):
    """CA-EM: w = χ(w) v_0 + (1 − χ(w)) w′, χ(w) = σ(θᵀ w_σ) ([Z] eq. 12, 19 and 22, Fig. 2 a).

    ``weight`` is w′. The padding has a vector of zero, like in any embedding. v_0 starts at the scale of w′.

    Args:
        symbols: V, size of the vocabulary.
        dim: n, width of w′ and v_0.
        chi_dim: m, width of w_σ.
        unknown: index of the unknown symbol, whose χ is 1 (eq. 21).
    """

    def __init__(self, symbols: int, dim: int, chi_dim: int, padding: int, unknown: Optional[int] = None):
        super().__init__(symbols, dim, padding)
        self.padding_idx: int = padding
        self.unknown = unknown
        self.for_chi = Embedding(symbols, chi_dim)  # w_σ
        self.theta = nn.Parameter(torch.empty(chi_dim).normal_(0, chi_dim**-0.5))
        self.v_0 = nn.Parameter(torch.empty(dim).normal_(0, dim**-0.5))

    def forward(self, input: Tensor) -> Tensor:
        """[..., n] for indices [...]."""
        w = super().forward(input)
        dtype = computing_type(w.dtype)
        score = self.for_chi(input).to(dtype) @ self.theta.to(dtype)
        if self.unknown is not None:
            score = score.masked_fill(input.eq(self.unknown), torch.inf)
        mixed = compose(self.indicator(score)[..., None], self.v_0, w).to(w.dtype)
        return mixed.masked_fill(input.eq(self.padding_idx)[..., None], 0)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        yield self.theta
        yield from self.for_chi.parameters()


class ChiEmbedding(Embedding, ChiGated):
    """Embeddings w_σ for a χ that another layer computes ([Z] sec. 3.3, last paragraph)."""

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        return self.parameters()


class BagOfFeatures(ChiGated):
    """CA-BSFE: s = v_0 Σ_w χ(w) + Σ_w (1 − χ(w)) w, χ(w) = σ(θᵀ w_σ) ([Z] eq. 19-20)."""

    def __init__(self, dim: int, chi_dim: int):
        super().__init__()
        self.theta = nn.Parameter(torch.empty(chi_dim).normal_(0, chi_dim**-0.5))
        self.v_0 = nn.Parameter(torch.empty(dim).normal_(0, dim**-0.5))

    def add_up(self, w: Tensor, w_sigma: Tensor, rows: Ragged, unknown: Optional[Tensor] = None) -> Tensor:
        """s of every row, [R, n].

        Args:
            w: [N, n] vectors of the packed symbols.
            w_sigma: [N, m].
            unknown: [N] mask of symbols with χ = 1 (eq. 21).
        """
        dtype = computing_type(w_sigma.dtype)
        score = w_sigma.to(dtype) @ self.theta.to(dtype)
        if unknown is not None:
            score = score.masked_fill(unknown, torch.inf)
        return rows.sum(compose(self.indicator(score)[:, None], self.v_0, w)).to(w.dtype)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        yield self.theta


class SparseFeatures(BagOfFeatures):
    """:class:`BagOfFeatures` over symbol indices, with embeddings w and w_σ of each symbol.

    Args:
        symbols: V; indices outside 0 … V − 1 are out of vocabulary.
        dim: n, width of w.
        chi_dim: m, width of w_σ.
        unknown: index that is out of vocabulary, too.
    """

    def __init__(self, symbols: int, dim: int, chi_dim: int, unknown: Optional[int] = None):
        super().__init__(dim, chi_dim)
        self.symbols = symbols
        self.unknown = unknown
        self.words = nn.Embedding(symbols, dim)  # w
        self.words_for_chi = nn.Embedding(symbols, chi_dim)  # w_σ
        nn.init.normal_(self.words.weight, std=dim**-0.5)

    def forward(self, tokens: Tensor, rows: Ragged) -> Tensor:
        """[R, n] from packed indices [N]."""
        unknown = (tokens < 0) | (tokens >= self.symbols)
        known = tokens.masked_fill(unknown, 0)
        if self.unknown is not None:
            unknown = unknown | (tokens == self.unknown)
        return self.add_up(self.words(known), self.words_for_chi(known), rows, unknown)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        yield self.theta
        yield from self.words_for_chi.parameters()


@SENTENCE_ENCODERS.register("ca-bsfe")
class BagOfStates(BagOfFeatures, SentenceEncoder):
    """:class:`BagOfFeatures` over token states: w = x, w_σ = W_σ x + b, with m the width of a head.

    ([Z] looks up two embeddings of each symbol; here a linear map computes w_σ from the state.) A sum, as in the
    equation: its scale grows with the length of the sentence.
    """

    def __init__(self, embed_dim: int, heads: int):
        super().__init__(embed_dim, embed_dim // heads)
        self.for_chi = projection(embed_dim, embed_dim // heads, zero_bias=True)  # W_σ, b

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        return self.add_up(x, self.for_chi(x), sentences)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        yield self.theta
        yield from self.for_chi.parameters()

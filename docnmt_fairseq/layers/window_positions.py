"""Positions in a window of several sentences that a stock encoder or decoder takes for one ([TS])."""

from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from docnmt_fairseq.layers.positions import LearnedPositions


def segment_distance(tokens: Tensor, break_symbol: int) -> Tensor:
    """The breaks from each token on, [B, m]: 0 in the last sentence; a break belongs to what it ends."""
    return tokens.eq(break_symbol).flip(1).cumsum(1).flip(1)


def numbers_in_sentences(tokens: Tensor, break_symbol: int, padding: int, ends: bool) -> Tensor:
    """Each token's number in its sentence of a window, from 1, [B, m]; 0 of padding.

    Args:
        tokens: [B, m], padded on either side.
        break_symbol: number of the break.
        padding: number of padding.
        ends: whether a break ends a sentence, as in sources; or begins one, as in what a decoder is given.
    """
    seen = tokens.ne(padding)
    numbers = seen.cumsum(1)
    before = torch.where(tokens.eq(break_symbol), numbers if ends else numbers - 1, 0).cummax(1).values
    if ends:  # a break belongs to what it ends
        before = functional.pad(before[:, :-1], (1, 0))
    return (numbers - before) * seen


class RestartedPositions(nn.Module):
    """Token positions of a stock encoder or decoder, counted anew in each sentence of a window.

    A sentence-level model then finds every sentence of a window where it knows sentences to be: breaks stand where the
    source has its end, and where the decoder is given the beginning.

    Args:
        words: the positions, [B, m] tokens to [B, m, d].
        break_symbol: number of the break.
        padding: number of padding.
        ends: see :func:`numbers_in_sentences`.
    """

    def __init__(self, words: nn.Module, break_symbol: int, padding: int, ends: bool):
        super().__init__()
        self.words, self.break_symbol, self.padding, self.ends = words, break_symbol, padding, ends

    @property
    def max_positions(self) -> int:
        """The most tokens that the positions allow."""
        allowed: Any = self.words.max_positions  # an attribute of fairseq's embeddings
        return int(allowed)

    def forward(self, tokens: Tensor, incremental_state: Optional[Any] = None, **others: Any) -> Tensor:
        """[B, m, d] of tokens [B, m]; of the last ones alone, [B, 1, d], with an incremental state."""
        numbers = numbers_in_sentences(tokens, self.break_symbol, self.padding, self.ends)
        if incremental_state is not None:
            numbers = numbers[:, -1:]
        most = min(tokens.shape[1], self.max_positions)
        table = self.words(tokens.new_full((1, most), self.break_symbol))[0]
        return functional.embedding(numbers, functional.pad(table, (0, 0, 1, 0)))


class PositionsWithSegments(nn.Module):
    """Token positions of a stock encoder plus a learned embedding by distance, which begins at zero.

    [TS] sec. 3 marks words of context with a prefix, i.e. gives each its own embedding; here a token's embedding is
    shared and what context adds to it is learned once for each distance.

    Args:
        words: the encoder's positions, [B, m] tokens to [B, m, d].
        segments: sentences of a window; those beyond share the last row.
        embed_dim: d.
        break_symbol: number of the break.
    """

    def __init__(self, words: nn.Module, segments: int, embed_dim: int, break_symbol: int):
        super().__init__()
        self.words = words
        self.segments = LearnedPositions(segments, embed_dim, "segment")
        self.break_symbol = break_symbol

    @property
    def max_positions(self) -> int:
        """The most tokens that the encoder's positions allow."""
        allowed: Any = self.words.max_positions  # an attribute of fairseq's embeddings
        return int(allowed)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, m, d] of tokens [B, m], padded on either side."""
        return self.words(tokens) + self.segments(segment_distance(tokens, self.break_symbol))

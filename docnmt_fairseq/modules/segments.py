"""Segment embeddings: which sentence of a window a word is of, counted back from the one to be translated."""

from torch import Tensor, nn

from docnmt_fairseq.modules.positions import LearnedPositions


def segment_distance(tokens: Tensor, break_symbol: int) -> Tensor:
    """Returns the breaks from each word on, [B, m]: 0 in the last sentence; a break belongs to what it ends."""
    return tokens.eq(break_symbol).flip(1).cumsum(1).flip(1)


class PositionsWithSegments(nn.Module):
    """Word positions of a stock encoder plus a learned embedding by distance, which begins at zero.

    [TS] sec. 3 marks words of context with a prefix, i.e. gives each its own embedding; here a word's embedding is
    shared and what context adds to it is learned once for each distance.

    Args:
        words: the encoder's positions, [B, m] tokens to [B, m, d].
        segments: sentences of a window; further ones share the last row.
        embed_dim: d.
        break_symbol: number of the break.
    """

    def __init__(self, words: nn.Module, segments: int, embed_dim: int, break_symbol: int):
        super().__init__()
        self.words = words
        self.segments = LearnedPositions(segments, embed_dim, "segment", zero=True)
        self.break_symbol = break_symbol

    @property
    def max_positions(self) -> int:
        """Returns what the word positions allow."""
        return self.words.max_positions

    def forward(self, tokens: Tensor) -> Tensor:
        """Returns [B, m, d] of tokens [B, m], padded on either side."""
        return self.words(tokens) + self.segments(segment_distance(tokens, self.break_symbol))

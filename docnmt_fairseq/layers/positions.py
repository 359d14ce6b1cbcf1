"""Structural positions: one embedding per level (token, sentence, paragraph, section, ...), summed ([T] sec. 1.2)."""

import logging
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Mapping, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.boundaries import LEVELS
from docnmt_fairseq.layers.precision import Embedding, gather_rows

logger = logging.getLogger(__name__)

KINDS = ("learned", "sinusoidal", "none")
SINUSOIDS = FAIRSEQ, MARIAN = ("fairseq", "marian")
WORD_SCOPES = ("sentence", "document")
ADDED_LEVELS = ("sentence", *LEVELS)  # levels that a sentence-level model does not have
SIZED_LEVELS = ("sentence", "paragraph", "section")  # levels with an option --max-LEVEL-positions


def sinusoid(positions: Tensor, embed_dim: int, formula: str = FAIRSEQ) -> Tensor:
    """Sinusoidal embeddings [..., embed_dim] in float32 of positions [...], sines first, then cosines.

    The i-th rate is 10000^(-i / (h - 1)), h = ⌊d / 2⌋, in fairseq, and 10000^(-2 i / d) in Marian.

    Args:
        positions: positions as the formula counts them.
        formula: a name in ``SINUSOIDS``.
    """
    half = embed_dim // 2
    if formula == MARIAN:  # in float64, like Marian's tables: angles of late positions are large
        exponents = torch.arange(embed_dim - half, device=positions.device, dtype=torch.float64) * (2 / embed_dim)
        angles = positions[..., None].double() * 10000**-exponents
        return torch.cat([angles.sin(), angles[..., :half].cos()], dim=-1).float()
    rates = torch.exp(torch.arange(half, device=positions.device) * (-math.log(10000) / max(half - 1, 1)))
    angles = positions[..., None].float() * rates
    table = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return nn.functional.pad(table, (0, embed_dim - 2 * half))


class LearnedPositions(Embedding):
    """Learned table; positions beyond it share its last row, with one warning.

    Args:
        size: number of positions with their own row.
        name: name of the level, for the warning.
        offset: unused rows in front, as in fairseq's tables (padding index + 1).
        std: standard deviation of initial values; 0: zeros, so that an added level starts without effect.
    """

    def __init__(self, size: int, embed_dim: int, name: str, offset: int = 0, std: float = 0.0):
        super().__init__(size + offset, embed_dim)
        self.offset = offset
        self.last = size - 1
        self.name = name
        self.warned = False
        nn.init.normal_(self.weight, std=std) if std else nn.init.zeros_(self.weight)
        if offset:
            nn.init.zeros_(self.weight[offset - 1])

    def forward(self, positions: Tensor, highest: Optional[int] = None) -> Tensor:
        """Embeddings [..., d] of positions [...].

        Args:
            positions: positions from 0.
            highest: maximum of the positions; None: computed on CPUs, unknown on devices (no synchronisation).
        """
        if highest is None and not self.warned and positions.device.type == "cpu":
            highest = int(positions.max()) if positions.numel() else 0
        if not self.warned and highest is not None and highest > self.last:
            self.warned = True
            remedy = f"; --max-{self.name}-positions sets its size" if self.name in SIZED_LEVELS else ""
            logger.warning(f"{self.name} positions beyond {self.last} share the last row of the learned table{remedy}")
        return super().forward(positions.clamp(max=self.last) + self.offset)


class SinusoidalPositions(nn.Module):
    """Sinusoids; Marian's start at 0, fairseq's at ``offset`` like :class:`LearnedPositions`."""

    def __init__(self, embed_dim: int, offset: int = 0, formula: str = FAIRSEQ):
        super().__init__()
        self.embed_dim = embed_dim
        self.offset = 0 if formula == MARIAN else offset
        self.formula = formula

    def forward(self, positions: Tensor, highest: Optional[int] = None) -> Tensor:
        """Embeddings [..., d] of positions [...]."""
        return sinusoid(positions + self.offset, self.embed_dim, formula=self.formula)


@dataclass(frozen=True)
class PositionTable:
    """Kind and size of the position embeddings of one level.

    Args:
        size: number of learned positions with their own row.
        offset: see :class:`LearnedPositions`; padding index + 1 gives words exactly fairseq's embeddings.
    """

    kind: str = "none"
    size: int = 64
    offset: int = 0
    formula: str = FAIRSEQ

    def build(self, embed_dim: int, name: str, std: float) -> Optional[nn.Module]:
        """Builds the embedding; None for ``none``."""
        if self.kind == "none":
            return None
        if self.kind == "sinusoidal":
            return SinusoidalPositions(embed_dim, self.offset, self.formula)
        return LearnedPositions(self.size, embed_dim, name, self.offset, std)


def places(layout: DocumentLayout, level: str) -> Tuple[Tensor, int]:
    """Position of each sentence at a level, [R], and the highest: in its document, or of the unit that it is in.

    If the corpus lacks a level, all sentences are in its first unit.
    """
    if level == "sentence":
        return layout.sentence_position, layout.last_sentence
    number = LEVELS.index(level)
    if number < len(layout.last_unit):
        return layout.unit_position[number], layout.last_unit[number]
    return torch.zeros_like(layout.sentence_position), 0


class StructuralPositions(nn.Module):
    """E_word[p_w] + E_sentence[p_s] + E_paragraph[p_p] + E_section[p_c] + ... for every packed token.

    Sentences and larger units are counted from 0, from the start of the document. Tokens, which [T] calls words, are
    counted from the start of the sentence, or of the document ("the 135th word of the text"); a learned table then
    sees few examples of high positions, therefore ``sentence`` is the default. In chunks of long documents they are
    counted from the start of the chunk.

    Args:
        word_scope: start of token positions, a name in ``WORD_SCOPES``.
        added: tables of levels in ``ADDED_LEVELS``.
        zero: initialise learned tables of added levels with zero, so that training starts from the sentence-level
            model; otherwise at the scale of sinusoids. From zero they are learned late: where attention has to match
            the paragraphs of two tokens, both factors of the product are zero.
    """

    def __init__(
        self,
        embed_dim: int,
        word: PositionTable,
        word_scope: str = "sentence",
        added: Mapping[str, PositionTable] = MappingProxyType({}),
        zero: bool = True,
    ):
        super().__init__()
        self.word_scope = word_scope
        self.word = word.build(embed_dim, "word", embed_dim**-0.5)
        for level in ADDED_LEVELS:
            setattr(self, level, added.get(level, PositionTable()).build(embed_dim, level, 0.0 if zero else 2**-0.5))

    def forward(self, layout: DocumentLayout) -> Tensor:
        """[N, d], or a scalar zero without any level."""
        total = torch.zeros((), device=layout.device)
        if self.word is not None:
            rows = layout.tokens if self.word_scope == "sentence" else layout.document_tokens
            total = total + self.word(rows.item_column, rows.longest - 1)
        for level in ADDED_LEVELS:
            embedding = getattr(self, level)
            if embedding is not None:
                total = total + gather_rows(embedding(*places(layout, level)), layout.token_sentence)
        return total


def segment_distance(tokens: Tensor, break_symbol: int) -> Tensor:
    """Number of breaks from each token on, [B, m]: 0 in the last sentence; a break belongs to the sentence it ends."""
    return tokens.eq(break_symbol).flip(1).cumsum(1).flip(1)


class PositionsWithSegments(nn.Module):
    """Token positions of fairseq's encoder plus learned embeddings of the segment distance, initially zero.

    [TS] sec. 3 marks context words with a prefix, i.e. gives each its own embedding; here the token embedding is shared
    and the effect of context is learned once per distance.

    Args:
        words: fairseq's positions, [B, m] tokens to [B, m, d].
        segments: number of sentences in a window; those beyond share the last row.
    """

    def __init__(self, words: nn.Module, segments: int, embed_dim: int, break_symbol: int):
        super().__init__()
        self.words = words
        self.segments = LearnedPositions(segments, embed_dim, "segment")
        self.break_symbol = break_symbol

    @property
    def max_positions(self) -> int:
        """Maximum number of positions of fairseq's embedding."""
        allowed: Any = self.words.max_positions
        return int(allowed)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, m, d] for tokens [B, m], padded on either side."""
        return self.words(tokens) + self.segments(segment_distance(tokens, self.break_symbol))

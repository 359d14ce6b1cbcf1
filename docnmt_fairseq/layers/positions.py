"""Structural positions: one embedding a level (token, sentence, paragraph, section, ...), summed ([T] sec. 1.2)."""

import logging
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Mapping, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.layers.precision import Embedding, gather_rows
from docnmt_fairseq.marks import LEVELS

logger = logging.getLogger(__name__)

KINDS = ("learned", "sinusoidal", "none")
SINUSOIDS = FAIRSEQ, MARIAN = ("fairseq", "marian")
WORD_SCOPES = ("sentence", "document")
ADDED_LEVELS = ("sentence", *LEVELS)  # to the words' positions, which a sentence-level model has, too


def sinusoid(positions: Tensor, embed_dim: int, formula: str = FAIRSEQ) -> Tensor:
    """Sinusoidal embeddings [..., embed_dim] in float32 of positions [...], sines first, then cosines.

    The i-th rate is 10000^(-i / (h - 1)) of h = ⌊d / 2⌋ in fairseq, 10000^(-2 i / d) in Marian.

    Args:
        positions: as the formula counts them.
        embed_dim: d.
        formula: of ``SINUSOIDS``.
    """
    half = embed_dim // 2
    if formula == MARIAN:  # in float64, as its tables are made: angles of late positions are large
        exponents = torch.arange(embed_dim - half, device=positions.device, dtype=torch.float64) * (2 / embed_dim)
        angles = positions[..., None].double() * 10000**-exponents
        return torch.cat([angles.sin(), angles[..., :half].cos()], dim=-1).float()
    rates = torch.exp(torch.arange(half, device=positions.device) * (-math.log(10000) / max(half - 1, 1)))
    angles = positions[..., None].float() * rates
    table = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return nn.functional.pad(table, (0, embed_dim - 2 * half))


class LearnedPositions(Embedding):
    """A learned table; positions beyond it use its last row, with one warning.

    Args:
        size: positions that have a row of their own.
        embed_dim: d.
        name: the level, for the warning.
        offset: unused rows in front, as fairseq's tables have them (padding index + 1).
        std: of the normal distribution that it begins with; 0: at zero, so that an added level begins without effect.
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
            positions: from 0.
            highest: of them, if it is known; None: on a CPU they are looked at, a device is not waited for.
        """
        if highest is None and not self.warned and positions.device.type == "cpu":
            highest = int(positions.max()) if positions.numel() else 0
        if not self.warned and highest is not None and highest > self.last:
            self.warned = True
            logger.warning(f"{self.name} positions beyond {self.last} share the last row of the learned table")
        return super().forward(positions.clamp(max=self.last) + self.offset)


class SinusoidalPositions(nn.Module):
    """Sinusoids, defined for every position; Marian's begin at 0, fairseq's at ``offset`` as :class:`LearnedPositions`.

    Args:
        embed_dim: d.
        offset: of fairseq's.
        formula: of ``SINUSOIDS``.
    """

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
    """What embeds the positions of one level.

    Args:
        kind: of ``KINDS``.
        size: positions that have a row of their own, if they are learned.
        offset: see :class:`LearnedPositions`; with fairseq's padding index + 1, words get exactly fairseq's embeddings.
        formula: of sinusoids, of ``SINUSOIDS``.
    """

    kind: str = "none"
    size: int = 64
    offset: int = 0
    formula: str = FAIRSEQ

    def build(self, embed_dim: int, name: str, std: float) -> Optional[nn.Module]:
        """The embedding [..., embed_dim] of positions [...], None for ``none``; ``ValueError`` for an unknown kind.

        Args:
            embed_dim: d.
            name: the level.
            std: of what a learned one begins with.
        """
        if self.kind not in KINDS:
            raise ValueError(f"{name} positions {self.kind!r}: must be one of {', '.join(KINDS)}")
        if self.kind == "none":
            return None
        if self.kind == "sinusoidal":
            return SinusoidalPositions(embed_dim, self.offset, self.formula)
        return LearnedPositions(self.size, embed_dim, name, self.offset, std)


def places(layout: DocumentLayout, level: str) -> Tuple[Tensor, int]:
    """Where each sentence is, [R], and the highest: in its document (level ``sentence``), or its unit of a level above.

    Of levels that the corpus does not have, all sentences are in the first unit.
    """
    if level == "sentence":
        return layout.sentence_position, layout.last_sentence
    number = LEVELS.index(level)
    if number < len(layout.last_unit):
        return layout.unit_position[number], layout.last_unit[number]
    return torch.zeros_like(layout.sentence_position), 0


class StructuralPositions(nn.Module):
    """E_word[p_w] + E_sentence[p_s] + E_paragraph[p_p] + E_section[p_c] + ... for every packed token.

    Sentences, paragraphs, sections, chapters and parts are counted from the start of the document, from 0; in documents
    that are not divided so, all are in the first. Tokens, which [T] calls words, are
    counted from the start of the sentence, or of the document ("the 135th word of the text"): a learned table then
    sees few examples of high positions, which is why ``sentence`` is the default. In a later piece of a long document,
    they count from where the piece begins.

    Args:
        embed_dim: d.
        word: what embeds tokens' positions.
        word_scope: where tokens are counted from, of ``WORD_SCOPES``.
        added: what embeds those of levels of ``ADDED_LEVELS``; of others nothing is added.
        zero: learned positions of added levels begin at zero, so that a sentence-level model goes on as itself;
            else as large as sinusoids. From zero they are learnt late: where a token has to find what has its own
            paragraph, both sides of the product are zero.
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
        if word_scope not in WORD_SCOPES:
            raise ValueError(f"word positions from {word_scope!r}: must be one of {', '.join(WORD_SCOPES)}")
        if unknown := set(added) - set(ADDED_LEVELS):
            raise ValueError(f"positions of {', '.join(sorted(unknown))}: levels are {', '.join(ADDED_LEVELS)}")
        self.word_scope = word_scope
        self.word = word.build(embed_dim, "word", embed_dim**-0.5)
        for level in ADDED_LEVELS:
            setattr(self, level, added.get(level, PositionTable()).build(embed_dim, level, 0.0 if zero else 2**-0.5))

    def forward(self, layout: DocumentLayout) -> Tensor:
        """[N, d], or a scalar zero where no level is on."""
        total = torch.zeros((), device=layout.device)
        if self.word is not None:
            rows = layout.tokens if self.word_scope == "sentence" else layout.document_tokens
            total = total + self.word(rows.item_column, rows.longest - 1)
        for level in ADDED_LEVELS:
            embedding = getattr(self, level)
            if embedding is not None:
                of_sentences = embedding(*places(layout, level))
                total = total + gather_rows(of_sentences, layout.token_sentence)
        return total


def segment_distance(tokens: Tensor, break_symbol: int) -> Tensor:
    """The breaks from each token on, [B, m]: 0 in the last sentence; a break belongs to what it ends."""
    return tokens.eq(break_symbol).flip(1).cumsum(1).flip(1)


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

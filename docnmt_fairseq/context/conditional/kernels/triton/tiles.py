"""What depends on the batch alone: tokens in tiles that choose together, and sizes of work.

A GPU computes a grid of programs. A program that chooses takes a tile: up to ``TILE`` tokens of one document, one head.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import SelectionKey
from docnmt_fairseq.context.conditional.tree import TreesOfBatch

TILE = 32  # so few do not take the matrix units' way through Blackwell's tensor memory, which Triton 3.7 fails on
FIELDS = 7  # of a tile
LEAST_ITEM = 256  # queries
QUERIES_A_TOKEN = 4  # of the longest sentence: so many more


@dataclass(frozen=True)
class TilePlan:
    """The tokens that select, in tiles.

    Attributes:
        tiles: [tiles, FIELDS] int32: the first token's place among those that select; its number; how many tokens; the
            document; its t; its first sentence; how many sentences.
    """

    tiles: Tensor


@dataclass(frozen=True)
class Tiles(PlanKey[TilePlan]):
    """The tokens that select, in tiles; ``selection`` says which these are."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> TilePlan:
        """See :class:`PlanKey`."""
        plan = layout.plan(self.selection)
        tokens, sentences = layout.document_tokens, layout.sentences
        lengths = tokens.lengths[plan.documents]
        tiles = -(-lengths // TILE)
        number = np.repeat(np.arange(len(tiles)), tiles)  # [tiles] of the documents that select
        done = TILE * (np.arange(len(number)) - (np.cumsum(tiles) - tiles)[number])  # tokens before, in the document
        document = plan.documents[number]
        columns = (
            (np.cumsum(lengths) - lengths)[number] + done,
            tokens.offsets[document] + done,
            np.minimum(lengths[number] - done, TILE),
            document,
            plan.kept[document],
            sentences.offsets[document],
            sentences.lengths[document],
        )
        return TilePlan(layout.index(np.stack(columns, axis=1).astype(np.int32)))


@dataclass(frozen=True)
class TreePlan:
    """The form of the batch's trees, see :class:`~docnmt_fairseq.context.conditional.tree.SentenceTrees`.

    Attributes:
        first, counts: [heights, D] int32, the first node of every document at every height, and how many there are.
        heights: how many there are.
    """

    first: Tensor
    counts: Tensor
    heights: int


@dataclass(frozen=True)
class TreeForm(PlanKey[TreePlan]):
    """The form of the batch's trees."""

    def make(self, layout: DocumentLayout) -> TreePlan:
        """See :class:`PlanKey`."""
        trees = layout.plan(TreesOfBatch())
        first, counts = (layout.index(array.astype(np.int32)) for array in (trees.first, trees.counts))
        return TreePlan(first, counts, len(trees.counts))


@dataclass(frozen=True)
class WorkPlan:
    """Sizes of the work of attending.

    Attributes:
        offsets: [R + 1] int32, the first token of every sentence, at last all.
        longest: tokens of the longest sentence.
        item: the most queries of one sentence and head that a program takes. What several programs add to the gradient
            of the same keys is held beside each other for a while, longest · 2 numbers a program and channel; with at
            least four times as many queries as the longest sentence has tokens that is less than the queries' own.
        split: whether a sentence can attract more than that: a document has so many tokens.
    """

    offsets: Tensor
    longest: int
    item: int
    split: bool


@dataclass(frozen=True)
class Work(PlanKey[WorkPlan]):
    """Sizes of the work of attending."""

    def make(self, layout: DocumentLayout) -> WorkPlan:
        """See :class:`PlanKey`."""
        longest = layout.tokens.longest
        item = max(LEAST_ITEM, QUERIES_A_TOKEN * longest)
        offsets = layout.index(layout.tokens.offsets.astype(np.int32))
        return WorkPlan(offsets, longest, item, layout.document_tokens.longest > item)

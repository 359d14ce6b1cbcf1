"""Sentences in the order of their keys, a head: what stands side by side in a tree is then alike.

Neighbours in a document are not neighbours in key space, so the mean of their keys says little of either. Here leaves
are put in another order first: the 2^h places of a subtree are sorted along the direction in which their keys differ
most, so that its two halves are far from each other, from the root down. The tree's form stays that of
:mod:`~docnmt_fairseq.context.conditional.tree`; only which sentence stands where is another matter.
"""

from dataclasses import dataclass
from typing import List

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch
from docnmt_fairseq.layers.precision import computing_type, without_autocast

ITERATIONS = 4  # of the power method; measured: more find no more


@dataclass(frozen=True)
class Subtrees(PlanKey[List[Ragged]]):
    """The leaves of a batch by subtrees of 2^h places, from the highest trees' roots down to h = 2."""

    def make(self, layout: DocumentLayout) -> List[Ragged]:
        """See :class:`PlanKey`."""
        lengths = layout.sentences.lengths
        heights = len(layout.plan(TreesOfBatch()).sizes)
        return [_blocks(lengths, 2**height, layout) for height in range(heights - 1, 0, -1)]


def _blocks(lengths: np.ndarray, size: int, layout: DocumentLayout) -> Ragged:
    """Rows of ``size`` leaves, the last of a document perhaps of fewer."""
    counts = -(-lengths // size)
    sizes = np.full(int(counts.sum()), size)
    sizes[np.cumsum(counts) - 1] = lengths - size * (counts - 1)
    return Ragged(sizes, layout.device)


@torch.no_grad()
def order_of_keys(keys: Tensor, subtrees: List[Ragged]) -> Tensor:
    """The row of the sentence that stands at every place of every head's tree, [R, H] int64.

    Args:
        keys: [R, H, d_k].
        subtrees: of the batch.
    """
    rows, heads = keys.shape[:2]
    order = torch.arange(rows, device=keys.device)[:, None].expand(-1, heads)
    with without_autocast(keys):
        keys = keys.to(computing_type(keys.dtype))
        for blocks in subtrees:
            along = _along_most_variance(keys.gather(0, order[..., None].expand_as(keys)), blocks)
            place = along.argsort(dim=0, stable=True)
            block = blocks.item_row[:, None].expand_as(place).gather(0, place)
            order = order.gather(0, place.gather(0, block.argsort(dim=0, stable=True)))
    return order


def _along_most_variance(keys: Tensor, blocks: Ragged) -> Tensor:
    """Where keys [R, H, d_k] stand along the direction in which those of their block differ most, [R, H]."""
    mean = blocks.sum(keys) / blocks.lengths_tensor[:, None, None]
    deviation = keys - mean.index_select(0, blocks.item_row)
    widest = blocks.sum(deviation.square()).argmax(-1, keepdim=True)
    direction = torch.zeros_like(mean).scatter_(-1, widest, 1.0)
    for _ in range(ITERATIONS):
        along = (deviation * direction.index_select(0, blocks.item_row)).sum(-1, keepdim=True)
        direction = torch.nn.functional.normalize(blocks.sum(along * deviation), dim=-1)
    return (deviation * direction.index_select(0, blocks.item_row)).sum(-1)


def mean_keys(keys: Tensor, order: Tensor, trees: SentenceTrees) -> Tensor:
    """The means of children's keys at all nodes, [nodes, H, d_k], of leaves [R, H, d_k] in an order [R, H].

    In float32 at least, in which trees are walked.
    """
    keys = keys.to(computing_type(keys.dtype))
    levels = [keys.gather(0, order[..., None].expand_as(keys))]
    for level in trees.levels:
        below = levels[-1]
        pairs = below.index_select(0, level.merged).unflatten(0, (-1, 2)).mean(1)
        levels.append(torch.cat([pairs, below.index_select(0, level.copied)]).index_select(0, level.order))
    return torch.cat(levels)


def sentences_at(places: Tensor, order: Tensor) -> Tensor:
    """The rows of the sentences at places [M, H, t] of trees whose leaves are in an order [R, H]; −1 stays −1."""
    heads = order.size(1)
    number = places.clamp(min=0) * heads + torch.arange(heads, device=order.device)[:, None]
    return order.flatten().index_select(0, number.flatten()).view_as(places).masked_fill(places < 0, -1)

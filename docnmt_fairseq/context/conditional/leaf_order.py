"""Leaf order of sentence trees by key similarity, per head, and the walk of such trees.

Adjacent sentences of a document are not adjacent in key space, so the mean of their keys represents neither. Here
leaves
are reordered first: from the root down, the 2^h leaves of a subtree are sorted along the direction of largest variance
of their keys, so that its two halves are far apart. The shape of the tree stays that of
:mod:`~docnmt_fairseq.context.conditional.tree`.
"""

from dataclasses import dataclass
from typing import List

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.context.conditional.kernels import SelectionKernel
from docnmt_fairseq.context.conditional.selection import SelectionKey, TreeBeam
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch
from docnmt_fairseq.layers.precision import computing_type, without_autocast
from docnmt_fairseq.layers.tie_break import stable_top_k

ITERATIONS = 4  # of the power method; more find no better trees (measured)


@dataclass(frozen=True)
class Subtrees(PlanKey[List[Ragged]]):
    """Leaves of a batch in subtrees of 2^h places, from the highest roots down to h = 1."""

    def make(self, layout: DocumentLayout) -> List[Ragged]:
        """See :class:`PlanKey`."""
        lengths = layout.sentences.lengths
        heights = len(layout.plan(TreesOfBatch()).sizes)
        return [_blocks(lengths, 2**height, layout) for height in range(heights - 1, 0, -1)]


def _blocks(lengths: np.ndarray, size: int, layout: DocumentLayout) -> Ragged:
    """Returns rows of ``size`` leaves; the last row of a document may have fewer."""
    counts = -(-lengths // size)
    sizes = np.full(int(counts.sum()), size)
    sizes[np.cumsum(counts) - 1] = lengths - size * (counts - 1)
    return Ragged(sizes, layout.device)


@torch.no_grad()
def leaf_order(keys: Tensor, subtrees: List[Ragged]) -> Tensor:
    """Returns the sentence row at every leaf of every head's tree, [R, H] int64.

    Args:
        keys: [R, H, d_k].
        subtrees: plan of the batch.
    """
    rows, heads = keys.shape[:2]
    order = torch.arange(rows, device=keys.device)[:, None].expand(-1, heads)
    with without_autocast(keys):
        keys = keys.to(computing_type(keys.dtype))
        for blocks in subtrees:
            along = _along_largest_variance(keys.gather(0, order[..., None].expand_as(keys)), blocks)
            place = along.argsort(dim=0, stable=True)
            block = blocks.item_row[:, None].expand_as(place).gather(0, place)
            order = order.gather(0, place.gather(0, block.argsort(dim=0, stable=True)))
    return order


def _along_largest_variance(keys: Tensor, blocks: Ragged) -> Tensor:
    """Projects keys [R, H, d_k] onto the direction of largest variance of their block, [R, H] (power method)."""
    mean = blocks.sum(keys) / blocks.lengths_tensor[:, None, None]
    deviation = keys - mean.index_select(0, blocks.item_row)
    widest = blocks.sum(deviation.square()).argmax(-1, keepdim=True)
    direction = torch.zeros_like(mean).scatter_(-1, widest, 1.0)
    for _ in range(ITERATIONS):
        along = (deviation * direction.index_select(0, blocks.item_row)).sum(-1, keepdim=True)
        direction = torch.nn.functional.normalize(blocks.sum(along * deviation), dim=-1)
    return (deviation * direction.index_select(0, blocks.item_row)).sum(-1)


def mean_keys(keys: Tensor, order: Tensor, trees: SentenceTrees) -> Tensor:
    """Returns the means of the children's keys at all nodes, [nodes, H, d_k], in float32 at least.

    Args:
        keys: [R, H, d_k] of the leaves.
        order: [R, H] leaf order.
        trees: trees of the batch.
    """
    keys = keys.to(computing_type(keys.dtype))
    levels = [keys.gather(0, order[..., None].expand_as(keys))]
    for level in trees.levels:
        below = levels[-1]
        pairs = below.index_select(0, level.merged).unflatten(0, (-1, 2)).mean(1)
        levels.append(torch.cat([pairs, below.index_select(0, level.copied)]).index_select(0, level.order))
    return torch.cat(levels)


def sentences_at(leaves: Tensor, order: Tensor) -> Tensor:
    """Returns the sentence rows at leaves [M, H, t] of trees with a leaf order [R, H]; −1 stays −1."""
    heads = order.size(1)
    number = leaves.clamp(min=0) * heads + torch.arange(heads, device=order.device)[:, None]
    return order.flatten().index_select(0, number.flatten()).view_as(leaves).masked_fill(leaves < 0, -1)


def tree_beam(selection: SelectionKey, beam: int) -> SelectionKey:
    """Returns the key for the nodes of a height that a walk keeps: t, or ``beam`` if that is more."""
    return TreeBeam(selection, beam) if beam else selection


@torch.no_grad()
def best_of(
    found: Tensor, q: Tensor, k: Tensor, layout: DocumentLayout, selection: SelectionKey, kernel: SelectionKernel
) -> Tensor:
    """Returns the t most relevant of the sentences that a walk found, [M, H, max_t].

    Args:
        found: [M, H, b] rows of sentences, −1: none.
        q, k: [N, H, d_k] queries and [R, H, d_k] keys of relevance.
        layout: the batch.
        selection: key of the tokens and of t.
        kernel: computes the scores.
    """
    plan = layout.plan(selection)
    place = stable_top_k(kernel.score(q, k, plan.items, found), plan.max_t)[1]
    return found.gather(2, place).masked_fill(torch.arange(plan.max_t, device=q.device) >= plan.limit, -1)


@torch.no_grad()
def choose_by_keys(
    kernel: SelectionKernel, q: Tensor, keys: Tensor, layout: DocumentLayout, selection: SelectionKey, beam: int = 0
) -> Tensor:
    """Returns the rows of the sentences found in trees ordered by keys, [M, H, max_t]; −1: none.

    Args:
        kernel: walks and scores.
        q: [N, H, d_k] queries of relevance.
        keys: [R, H, d_k] keys of relevance.
        layout: the batch.
        selection: key of the tokens that select, and of t.
        beam: nodes of a height that the walk keeps, if more than t.
    """
    keys = keys.detach()
    order = leaf_order(keys, layout.plan(Subtrees()))
    nodes = mean_keys(keys, order, layout.plan(TreesOfBatch()))
    found = sentences_at(kernel.choose_in_tree(q, nodes, layout, tree_beam(selection, beam)), order)
    return best_of(found, q, keys, layout, selection, kernel) if beam else found

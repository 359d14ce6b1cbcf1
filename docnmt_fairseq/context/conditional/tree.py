"""Binary trees over the sentence encodings of documents ([T] sec. 3.3.1, fig. 2), one tree per document.

**Format.** Nodes of the whole batch are numbered by height: first the leaves of all documents (height 0: node r is
sentence row r), then all nodes of height 1, and so on; within a height by document, then from left to right. Document d
with n sentences has ⌈n / 2^h⌉ nodes at height h, up to its root at height ⌈log2 n⌉. Its node j of height h is node
``first[h, d] + j`` of the batch. The children of j are nodes 2j and 2j + 1 of the height below; the last node has only
2j if that height has an odd number of nodes, and is a copy of this single child. Values of nodes are tensors
[nodes, ...] in this order.

A walk down document d needs ``first[:, d]`` and n only: it starts at a height with few nodes and goes from j to 2j, and
to 2j + 1 if that is below ⌈n / 2^h⌉; at height 0, ``first[0, d] + j`` is the sentence row. Above the root of a
document, ``first`` repeats the root and ``counts`` is 1, so that trees of different heights can be walked together.

**Leaf order by key similarity.** Adjacent sentences of a document are not adjacent in key space, so the mean of their
keys represents neither. :func:`leaf_order` reorders the leaves, per head: from the root down, the 2^h leaves of a
subtree are sorted along the direction of largest variance of their keys, so that its two halves are far apart. The
shape of the tree stays the same.
"""

from dataclasses import dataclass
from typing import Callable, List

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged, set_fields
from docnmt_fairseq.layers.precision import computing_type, without_autocast

ITERATIONS = 4  # of the power method that orders leaves; more find no better trees (measured)


@dataclass(frozen=True)
class TreeLevel:
    """Construction of the nodes of one height from those of the height below; indices are within a height."""

    pairs: Ragged  # rows of two children, one per merged node
    merged: Tensor  # [2 · pairs] these children, left and right alternating
    copied: Tensor  # [singles] children without a partner
    order: Tensor  # [nodes] index of every node in the merged ones followed by the copied ones
    children: Tensor  # [c] nodes of the height below that have a parent (all but roots), ascending
    parents: Tensor  # [c] their parents


@dataclass(frozen=True, init=False, eq=False)
class SentenceTrees:
    """Trees of a batch in the format above."""

    first: np.ndarray  # [heights, D] int64, first node of every document at every height
    counts: np.ndarray  # [heights, D] int64, ⌈n / 2^h⌉
    sizes: List[int]  # number of nodes of every height
    # construction of height h + 1 from height h, for h = 0, 1, …; at least one, perhaps without nodes
    levels: List[TreeLevel]

    def __init__(self, sentences: Ragged):
        """Creates the trees of documents of ``sentences``."""
        heights = np.ceil(np.log2(sentences.lengths)).astype(np.int64)  # [D] of the roots
        number = np.arange(max(1, int(heights.max())) + 1)[:, None]
        counts = -(-sentences.lengths // 2**number)  # [heights, D]
        existing = np.where(number <= heights, counts, 0)
        sizes = existing.sum(1).tolist()
        starts = np.cumsum(existing, axis=1) - existing  # inside a height
        before = np.concatenate([[0], np.cumsum(sizes)[:-1]])[:, None]
        root = (before + starts)[heights, np.arange(sentences.rows)]
        set_fields(
            self,
            first=np.where(number <= heights, before + starts, root),
            counts=counts,
            sizes=sizes,
            levels=[self._level(existing, starts, height, sentences) for height in range(1, len(number))],
        )

    @staticmethod
    def _level(existing: np.ndarray, starts: np.ndarray, height: int, sentences: Ragged) -> TreeLevel:
        document = np.repeat(np.arange(sentences.rows), existing[height])  # [nodes]
        node = np.arange(len(document))
        left = starts[height - 1][document] + 2 * (node - starts[height][document])
        alone = left + 1 == (starts + existing)[height - 1][document]
        pair, single = np.flatnonzero(~alone), np.flatnonzero(alone)
        children = np.concatenate([left, left[pair] + 1])
        parents = np.concatenate([node, pair])
        ascending = np.argsort(children)
        arrays = (
            np.stack([left[pair], left[pair] + 1], axis=1).ravel(),
            left[single],
            np.argsort(np.concatenate([pair, single])),
            children[ascending],
            parents[ascending],
        )
        pairs = Ragged(np.full(len(pair), 2), sentences.device)
        return TreeLevel(pairs, *(sentences.index(array) for array in arrays))


@dataclass(frozen=True)
class TreesOfBatch(PlanKey[SentenceTrees]):
    """Trees of a batch."""

    def make(self, layout: DocumentLayout) -> SentenceTrees:
        return SentenceTrees(layout.sentences)


def construct(encodings: Tensor, trees: SentenceTrees, merge: Callable[[Tensor, Ragged], Tensor]) -> Tensor:
    """Returns the encodings of all nodes, [nodes, d]: ConstructBT ([T] sec. 3.3.1).

    Args:
        merge: maps packed children [2 · rows, d] and their rows to [rows, d]; called once per height, perhaps without
            rows, so that its parameters have a gradient in every batch.
    """
    levels = [encodings]
    for level in trees.levels:
        below = levels[-1]
        merged = merge(below.index_select(0, level.merged), level.pairs)
        made = torch.cat([merged, below.index_select(0, level.copied).to(merged.dtype)])
        levels.append(made.index_select(0, level.order))
    return torch.cat([level.to(levels[-1].dtype) for level in levels])


def path_sums(values: Tensor, trees: SentenceTrees) -> Tensor:
    """Returns for every node the sum of the values on its path from the root, both included: [nodes, ...].

    The cumulative relevance of a node is the sum of q·k/√d_k over that path: q·(path sum of the keys)/√d_k. A copied
    node counts in addition to its original. Accumulates in float32 at least.
    """
    heights = values.to(computing_type(values.dtype)).split(trees.sizes)
    sums = [heights[-1]]
    for level, own in zip(reversed(trees.levels), reversed(heights[:-1])):
        sums.append(own.index_add(0, level.children, sums[-1].index_select(0, level.parents)))
    return torch.cat(sums[::-1]).to(values.dtype)


@dataclass(frozen=True)
class Subtrees(PlanKey[List[Ragged]]):
    """Leaves of a batch in subtrees of 2^h places, from the highest roots down to h = 1."""

    def make(self, layout: DocumentLayout) -> List[Ragged]:
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
    """Returns the sentence row at every leaf of every head's tree, [R, H] int64."""
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
    """Returns the means of the children's keys at all nodes, [nodes, H, d_k], in float32 at least."""
    keys = keys.to(computing_type(keys.dtype))
    levels = [keys.gather(0, order[..., None].expand_as(keys))]
    for level in trees.levels:
        below = levels[-1]
        pairs = below.index_select(0, level.merged).unflatten(0, (-1, 2)).mean(1)
        levels.append(torch.cat([pairs, below.index_select(0, level.copied)]).index_select(0, level.order))
    return torch.cat(levels)

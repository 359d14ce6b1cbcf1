"""Selection by walking sentence trees: TraverseTree ([T] sec. 3.3.2), for every head and token by itself."""

from dataclasses import dataclass
from typing import List, Optional

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import Choosing, SelectionKey
from docnmt_fairseq.context.conditional.tree import TreesOfBatch
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast

DENSE_NODES = 256  # up to so many nodes of a height, scoring all of them costs less than gathering the children's keys
CHUNK = 2**21  # floating-point numbers of keys or scores that a step of the walk may hold on a CPU


@torch.no_grad()
def choose_in_tree(q: Tensor, keys: Tensor, layout: DocumentLayout, selection: SelectionKey) -> Tensor:
    """The rows of the sentences that every head and token finds, −1: none; [M, H, most] int64.

    From the root down, the children of the nodes still kept are scored by q·k, and the t best of every height kept,
    the leftmost first among equals. See :meth:`SelectionKernel.choose_in_tree`, whose contract this is.
    """
    plan, most = layout.plan(Choosing(selection)).sentences, layout.plan(selection).most
    walks = layout.plan(Walks(selection))
    chosen = []
    with without_autocast(q):
        for block, walked in zip(plan.blocks, walks):
            walk = TreeWalk(keys, walked)
            tokens = block.query.split(max(1, chunk_elements(q.device, CHUNK) // walk.numbers_a_token), dim=1)
            found = torch.cat([walk(q[index].transpose(1, 2)) for index in tokens], dim=2)  # [b, H, w, ≤ most]
            chosen.append(F.pad(found, (0, most - found.size(-1)), value=-1).transpose(1, 2))
    return plan.gather(chosen)


@dataclass(frozen=True)
class WalkPlan:
    """Where the tokens of some documents walk, all at once.

    Heights where every document has at most t nodes need no scores: all their nodes are kept, whatever they score. The
    walk begins below them.

    Attributes:
        counts: [heights, b] nodes of each document.
        start: the height that the walk begins below.
        most: the largest t.
        kept: [b, 1, 1, 1] t of each.
        limits, first: [heights, b, 1, 1, 1] ``counts`` and the first node of each document.
        nodes: of each height below ``start`` all nodes of the documents, [b, nodes]; what is too much repeats the last;
            None where they are too many to be scored all.
        roots: [nodes at ``start``] the numbers of these in their documents.
    """

    counts: np.ndarray
    start: int
    most: int
    kept: Tensor
    limits: Tensor
    first: Tensor
    nodes: List[Optional[Tensor]]
    roots: Tensor


@dataclass(frozen=True)
class Walks(PlanKey[List[WalkPlan]]):
    """The walks of the tokens that select, by the blocks of :class:`Choosing`."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> List[WalkPlan]:
        """See :class:`PlanKey`."""
        trees, kept = layout.plan(TreesOfBatch()), layout.plan(self.selection).kept
        choices, walks = layout.plan(Choosing(self.selection)), []
        for rows, limit in zip(choices.sentences.groups, choices.limits):
            counts, of_rows = trees.counts[:, rows], kept[rows]
            start = int((counts <= of_rows).all(1).argmax())
            limits, first = (layout.index(x[:, rows])[:, :, None, None, None] for x in (trees.counts, trees.first))
            nodes = [_all_nodes(counts[height], trees.first[height, rows]) for height in range(start)]
            on_device = [None if index is None else layout.index(index) for index in nodes]
            roots = layout.index(np.arange(int(counts[start].max())))
            walks.append(WalkPlan(counts, start, int(of_rows.max()), limit, limits, first, on_device, roots))
        return walks


def _all_nodes(counts: np.ndarray, first: np.ndarray) -> Optional[np.ndarray]:
    """The nodes [b, nodes] of a height; None where they are too many."""
    width = int(counts.max())
    if width > DENSE_NODES:
        return None
    return first[:, None] + np.minimum(np.arange(width), counts[:, None] - 1)


class TreeWalk:
    """The walk of tokens of some documents, all at once.

    Args:
        keys: [nodes, H, d_k].
        plan: where they walk.
    """

    def __init__(self, keys: Tensor, plan: WalkPlan):
        self.heads, d_k = keys.shape[1:]
        self.keys = keys.flatten(0, 1)  # [nodes · H, d_k]
        self.plan = plan
        self.head = torch.arange(self.heads, device=keys.device)[:, None]
        self.dense = [self._keys_of(height) for height in range(plan.start)]
        widest = max((plan.counts[height].max() for height, k in enumerate(self.dense) if k is not None), default=0)
        self.numbers_a_token = plan.counts.shape[1] * self.heads * max(int(widest), 2 * plan.most * d_k)

    def _keys_of(self, height: int) -> Optional[Tensor]:
        """The keys of all nodes of a height, [b, H, d_k, nodes]; None where they are too many."""
        nodes = self.plan.nodes[height]
        if nodes is None:
            return None
        rows = nodes[:, None] * self.heads + self.head  # [b, H, nodes]
        return self._select(rows).transpose(2, 3)

    def _select(self, rows: Tensor) -> Tensor:
        """Keys [..., d_k], float32 at least, by numbers node · H + head."""
        keys = self.keys.index_select(0, rows.flatten()).unflatten(0, rows.shape)
        return keys.to(computing_type(keys.dtype))

    def __call__(self, q: Tensor) -> Tensor:
        """The rows of the sentences found, [b, H, w, ≤ most], ascending and then −1, from q [b, H, w, d_k]."""
        q = q.to(computing_type(q.dtype))
        # Nodes of a height from 0, ascending; a number too high for the document stands for none, and so will be its
        # children's numbers.
        nodes = self.plan.roots.expand(*q.shape[:3], -1)
        for height in reversed(range(self.plan.start)):
            children = torch.stack([2 * nodes, 2 * nodes + 1], dim=-1).flatten(-2)
            nodes = self.keep_best(children, self.relevance(q, children, height), height)
        return torch.where(nodes < self.plan.limits[0], self.plan.first[0] + nodes, -1)

    def relevance(self, q: Tensor, nodes: Tensor, height: int) -> Tensor:
        """q·k of nodes [b, H, w, c] of one height, −∞ where there is none."""
        real = nodes < self.plan.limits[height]
        dense = self.dense[height]
        if dense is not None:
            of_all = q @ dense  # [b, H, w, nodes of the height]
            scores = of_all.gather(-1, nodes.clamp(max=of_all.size(-1) - 1))
        else:
            node = self.plan.first[height] + nodes.minimum(self.plan.limits[height] - 1)
            scores = (self._select(node * self.heads + self.head[..., None]) @ q.unsqueeze(-1)).squeeze(-1)
        return scores.masked_fill(~real, -torch.inf)

    def keep_best(self, nodes: Tensor, scores: Tensor, height: int) -> Tensor:
        """The t best of ascending nodes [b, H, w, c], ascending."""
        place = torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., : self.plan.most]
        best = nodes.gather(-1, place)
        dropped = torch.arange(best.size(-1), device=best.device) >= self.plan.kept
        return best.masked_fill(dropped, int(self.plan.counts[height].max())).sort(dim=-1).values

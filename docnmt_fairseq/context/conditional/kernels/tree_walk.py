"""TraverseTree in PyTorch ([T] sec. 3.3.2): selection by walking sentence trees, for every head and token."""

from dataclasses import dataclass
from typing import List, Optional

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import Candidates, SelectionKey
from docnmt_fairseq.context.conditional.tree import TreesOfBatch
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast

DENSE_NODES = 256  # up to this many nodes of a height, scoring all is cheaper than gathering the children's keys
CHUNK = 2**21  # elements of keys or scores that a step of the walk may hold on a CPU


@torch.no_grad()
def choose_in_tree(q: Tensor, keys: Tensor, layout: DocumentLayout, selection: SelectionKey) -> Tensor:
    """Returns the rows of the sentences that every head and token finds; see :meth:`SelectionKernel.choose_in_tree`."""
    plan, max_t = layout.plan(Candidates(selection)).attention, layout.plan(selection).max_t
    walks = layout.plan(Walks(selection))
    chosen = []
    with without_autocast(q):
        for block, walk_plan in zip(plan.blocks, walks):
            walk = TreeWalk(keys, walk_plan)
            step = max(1, chunk_elements(q.device, CHUNK) // walk.elements_per_token)
            tokens = block.query.split(step, dim=1)
            found = torch.cat([walk(q[index].transpose(1, 2)) for index in tokens], dim=2)  # [b, H, w, ≤ max_t]
            chosen.append(F.pad(found, (0, max_t - found.size(-1)), value=-1).transpose(1, 2))
    return plan.gather(chosen)


@dataclass(frozen=True)
class WalkPlan:
    """Walk of the tokens of some documents, all at once.

    Heights where every document has at most t nodes need no scores, because all their nodes are kept. The walk starts
    below them.
    """

    counts: np.ndarray  # [heights, b] nodes of each document
    start: int  # height below which the walk starts
    max_t: int  # the largest t
    top_t: Tensor  # [b, 1, 1, 1] t of each document
    limits: Tensor  # [heights, b, 1, 1, 1] ``counts``
    first: Tensor
    # for each height below ``start`` all nodes of the documents, [b, nodes], padded by the last one; None if they are
    # too many to score all
    nodes: List[Optional[Tensor]]
    roots: Tensor  # [nodes at ``start``] their indices within the documents


@dataclass(frozen=True)
class Walks(PlanKey[List[WalkPlan]]):
    """Walks of the tokens that select, by the blocks of :class:`Candidates`."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> List[WalkPlan]:
        trees, top_t = layout.plan(TreesOfBatch()), layout.plan(self.selection).top_t
        candidates, walks = layout.plan(Candidates(self.selection)), []
        for rows, limit in zip(candidates.attention.groups, candidates.limits):
            counts, t_of_rows = trees.counts[:, rows], top_t[rows]
            start = int((counts <= t_of_rows).all(1).argmax())
            limits, first = (layout.index(x[:, rows])[:, :, None, None, None] for x in (trees.counts, trees.first))
            nodes = [_all_nodes(counts[height], trees.first[height, rows]) for height in range(start)]
            on_device = [None if index is None else layout.index(index) for index in nodes]
            roots = layout.index(np.arange(int(counts[start].max())))
            walks.append(WalkPlan(counts, start, int(t_of_rows.max()), limit, limits, first, on_device, roots))
        return walks


def _all_nodes(counts: np.ndarray, first: np.ndarray) -> Optional[np.ndarray]:
    """Returns the nodes [b, nodes] of a height; None if they are too many."""
    width = int(counts.max())
    if width > DENSE_NODES:
        return None
    return first[:, None] + np.minimum(np.arange(width), counts[:, None] - 1)


class TreeWalk:
    """Walk of tokens of some documents."""

    def __init__(self, keys: Tensor, plan: WalkPlan):
        self.heads, d_k = keys.shape[1:]
        self.keys = keys.flatten(0, 1)  # [nodes · H, d_k]
        self.plan = plan
        self.head = torch.arange(self.heads, device=keys.device)[:, None]
        self.dense = [self._keys_of(height) for height in range(plan.start)]
        widest = max((plan.counts[height].max() for height, k in enumerate(self.dense) if k is not None), default=0)
        self.elements_per_token = plan.counts.shape[1] * self.heads * max(int(widest), 2 * plan.max_t * d_k)

    def _keys_of(self, height: int) -> Optional[Tensor]:
        """Returns the keys of all nodes of a height, [b, H, d_k, nodes]; None if they are too many."""
        nodes = self.plan.nodes[height]
        if nodes is None:
            return None
        rows = nodes[:, None] * self.heads + self.head  # [b, H, nodes]
        return self._select(rows).transpose(2, 3)

    def _select(self, rows: Tensor) -> Tensor:
        """Returns keys [..., d_k], float32 at least, at indices node · H + head."""
        keys = self.keys.index_select(0, rows.flatten()).unflatten(0, rows.shape)
        return keys.to(computing_type(keys.dtype))

    def __call__(self, q: Tensor) -> Tensor:
        """Returns the rows of the sentences found, [b, H, w, ≤ max_t], ascending and then −1, from q [b, H, w, d_k]."""
        q = q.to(computing_type(q.dtype))
        # Nodes of a height from 0, ascending; an index beyond the document stands for no node, and so do those of its
        # children.
        nodes = self.plan.roots.expand(*q.shape[:3], -1)
        for height in reversed(range(self.plan.start)):
            children = torch.stack([2 * nodes, 2 * nodes + 1], dim=-1).flatten(-2)
            nodes = self.keep_best(children, self.relevance(q, children, height), height)
        return torch.where(nodes < self.plan.limits[0], self.plan.first[0] + nodes, -1)

    def relevance(self, q: Tensor, nodes: Tensor, height: int) -> Tensor:
        """Returns q·k of nodes [b, H, w, c] of one height, −∞ where there is none."""
        real = nodes < self.plan.limits[height]
        dense = self.dense[height]
        if dense is not None:
            all_scores = q @ dense  # [b, H, w, nodes of the height]
            scores = all_scores.gather(-1, nodes.clamp(max=all_scores.size(-1) - 1))
        else:
            node = self.plan.first[height] + nodes.minimum(self.plan.limits[height] - 1)
            scores = (self._select(node * self.heads + self.head[..., None]) @ q.unsqueeze(-1)).squeeze(-1)
        return scores.masked_fill(~real, -torch.inf)

    def keep_best(self, nodes: Tensor, scores: Tensor, height: int) -> Tensor:
        """Returns the t best of ascending nodes [b, H, w, c], ascending."""
        place = torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., : self.plan.max_t]
        best = nodes.gather(-1, place)
        dropped = torch.arange(best.size(-1), device=best.device) >= self.plan.top_t
        return best.masked_fill(dropped, int(self.plan.counts[height].max())).sort(dim=-1).values

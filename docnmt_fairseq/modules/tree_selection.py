"""Selection by walking sentence trees: TraverseTree ([T] sec. 3.3.2), for every head and word by itself."""

from typing import Optional

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.sentence_tree import SentenceTrees

DENSE_NODES = 256  # up to so many nodes of a height, scoring all of them costs less than gathering the children's keys
CHUNK = 2**21  # floating-point numbers of keys or scores that a step of the walk may hold


@torch.no_grad()
def choose_in_tree(
    q: Tensor,
    keys: Tensor,
    trees: SentenceTrees,
    layout: DocumentLayout,
    kept: np.ndarray,
    documents: Optional[np.ndarray] = None,
) -> Tensor:
    """Returns the rows of the sentences that every head and word finds, −1: none; [M, H, most] int64.

    From the root down, the children of the nodes still kept are scored by q·k, and the t best of every height kept,
    the leftmost first among equals. See :meth:`SelectionKernel.choose_in_tree`, whose contract this is.
    """
    name = "document>sentences" + ("" if documents is None else " " + documents.tobytes().hex())
    plan = layout.plan(name, layout.document_words, layout.sentences, rows=documents)
    kept = np.minimum(kept, layout.sentences.lengths)
    most = int(max(kept[block.rows].max() for block in plan.blocks))
    chosen = []
    with torch.autocast(q.device.type, enabled=False):  # selection is at least as precise as float32
        for block in plan.blocks:
            walk = TreeWalk(keys, trees, block.rows, kept[block.rows])
            words = block.query.split(max(1, CHUNK // walk.numbers_a_word), dim=1)
            found = torch.cat([walk(q[index].transpose(1, 2)) for index in words], dim=2)  # [b, H, w, ≤ most]
            chosen.append(F.pad(found, (0, most - found.size(-1)), value=-1).transpose(1, 2))
    return plan.gather(chosen)


class TreeWalk:
    """The walk of words of some documents, all at once.

    Heights where every document has at most t nodes need no scores: all their nodes are kept, whatever they score. The
    walk begins below them.

    Args:
        keys: [nodes, H, d_k].
        trees: of the batch.
        rows: [b] the documents.
        kept: [b] t of each.
    """

    def __init__(self, keys: Tensor, trees: SentenceTrees, rows: np.ndarray, kept: np.ndarray):
        self.heads, d_k = keys.shape[1:]
        self.keys = keys.flatten(0, 1)  # [nodes · H, d_k]
        self.counts = trees.counts[:, rows]
        self.start = int((self.counts <= kept).all(1).argmax())
        self.most = int(kept.max())
        self.kept = torch.from_numpy(kept).to(keys.device)[:, None, None, None]
        self.limits, self.first = (self._tensor(x[:, rows], keys.device) for x in (trees.counts, trees.first))
        self.dense = [self._keys_of(height) for height in range(self.start)]
        widest = max((self.counts[height].max() for height, k in enumerate(self.dense) if k is not None), default=0)
        self.numbers_a_word = len(rows) * self.heads * max(int(widest), 2 * self.most * d_k)

    @staticmethod
    def _tensor(by_height: np.ndarray, device: torch.device) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(by_height)).to(device)[:, :, None, None, None]

    def _keys_of(self, height: int) -> Optional[Tensor]:
        """Returns the keys of all nodes of a height, [b, H, d_k, nodes]; None where they are too many."""
        width = int(self.counts[height].max())
        if width > DENSE_NODES:
            return None
        node = torch.arange(width, device=self.keys.device).minimum(self.limits[height] - 1)  # [b, 1, 1, nodes]
        head = torch.arange(self.heads, device=self.keys.device)[:, None, None]
        return self._select((self.first[height] + node) * self.heads + head).squeeze(2).transpose(2, 3)

    def _select(self, rows: Tensor) -> Tensor:
        """Returns keys [..., d_k], float32 at least, by numbers node · H + head."""
        keys = self.keys.index_select(0, rows.flatten()).unflatten(0, rows.shape)
        return keys if keys.dtype == torch.float64 else keys.float()

    def __call__(self, q: Tensor) -> Tensor:
        """Returns the rows of the sentences found, [b, H, w, ≤ most], ascending and then −1, from q [b, H, w, d_k]."""
        q = q if q.dtype == torch.float64 else q.float()
        # Nodes of a height from 0, ascending; a number too high for the document stands for none, and so will be its
        # children's numbers.
        nodes = torch.arange(int(self.counts[self.start].max()), device=q.device).expand(*q.shape[:3], -1)
        for height in reversed(range(self.start)):
            children = torch.stack([2 * nodes, 2 * nodes + 1], dim=-1).flatten(-2)
            nodes = self.keep_best(children, self.relevance(q, children, height), height)
        return torch.where(nodes < self.limits[0], self.first[0] + nodes, -1)

    def relevance(self, q: Tensor, nodes: Tensor, height: int) -> Tensor:
        """Returns q·k of nodes [b, H, w, c] of one height, −∞ where there is none."""
        real = nodes < self.limits[height]
        if self.dense[height] is not None:
            of_all = q @ self.dense[height]  # [b, H, w, nodes of the height]
            scores = of_all.gather(-1, nodes.clamp(max=of_all.size(-1) - 1))
        else:
            node = self.first[height] + nodes.minimum(self.limits[height] - 1)
            head = torch.arange(self.heads, device=q.device)[:, None, None]
            scores = (self._select(node * self.heads + head) @ q.unsqueeze(-1)).squeeze(-1)
        return scores.masked_fill(~real, -torch.inf)

    def keep_best(self, nodes: Tensor, scores: Tensor, height: int) -> Tensor:
        """Returns the t best of ascending nodes [b, H, w, c], ascending."""
        place = torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., : self.most]
        best = nodes.gather(-1, place)
        dropped = torch.arange(best.size(-1), device=best.device) >= self.kept
        return best.masked_fill(dropped, int(self.counts[height].max())).sort(dim=-1).values

"""Context mechanism ``tree``: conditional attention that finds its sentences in a tree ([T] sec. 3.3)."""

import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.conditional.attention import Choose, SelectingAttention, SelectionOptions
from docnmt_fairseq.context.conditional.kernels import SelectionKernel
from docnmt_fairseq.context.conditional.selection import SelectionKey, TreeBeam
from docnmt_fairseq.context.conditional.tree import Subtrees, TreesOfBatch, construct, leaf_order, mean_keys, path_sums
from docnmt_fairseq.layers.capture import NodeRelevance, observer
from docnmt_fairseq.layers.precision import stable_top_k
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES
from docnmt_fairseq.options import Choices, option

SELECTION_SCORES = Choices(("level", "cumulative"))
BEAM = 16  # finds 96 to 98 % of the exact t best of 112 sentences (benchmarks/results/selection.md)
TREE_ORDERS = Choices(("text", "keys"))


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
        keys: [R, H, d_k] keys of relevance.
        selection: key of the tokens that select, and of t.
        beam: nodes of a height that the walk keeps, if more than t.
    """
    keys = keys.detach()
    order = leaf_order(keys, layout.plan(Subtrees()))
    nodes = mean_keys(keys, order, layout.plan(TreesOfBatch()))
    found = sentences_at(kernel.choose_in_tree(q, nodes, layout, tree_beam(selection, beam)), order)
    return best_of(found, q, keys, layout, selection, kernel) if beam else found


@CONTEXT_MECHANISMS.register("tree")
class TreeAttention(SelectingAttention):
    """Selection by a walk down a binary tree of sentence encodings: about t·log n scores per token instead of n.

    In text order, R of a sentence is its cumulative relevance, the sum of q·k/√d_k over its path from the root:
    q·(sum of the keys on the path)/√d_k. These sums are the keys of relevance, and gradients reach the merge through
    them. In key order, which is ours, R is that of flat selection, and the tree only finds sentences.
    """

    @dataclass(frozen=True)
    class Options(SelectionOptions):
        """Options of the tree and its walk."""

        tree_merge: str = option("source2token", "merge of two nodes of the sentence tree", names=TREE_MERGES)
        selection_score: str = option(
            "level", "score that decides which nodes of a height of the sentence tree are kept: level: their own "
            "relevance; cumulative: its sum from the root", names=SELECTION_SCORES,
        )  # fmt: skip

        tree_order: str = option(
            "text", "order of the leaves: text: that of the document, as in [T]; keys: similar sentences are adjacent, "
            "per head; inner nodes are then the means of the keys below, and R is that of flat selection",
            names=TREE_ORDERS,
        )  # fmt: skip
        tree_beam: int = option(
            0, "nodes of a height that the walk keeps, if more than t; the t best sentences found are selected",
            minimum=0,
        )  # fmt: skip

    def __init__(self, layer: LayerConfig, options: "TreeAttention.Options"):
        super().__init__(layer, options)
        self.by_cumulative = options.selection_score == "cumulative"
        self.beam = options.tree_beam
        self.by_keys = options.tree_order == "keys"
        if not self.by_keys:
            self.merge = TREE_MERGES[options.tree_merge](layer.embed_dim, layer.embed_dim // layer.head_dim)

    @classmethod
    def problems(cls, options: Any) -> Iterator[str]:
        yield from super().problems(options)
        if options.tree_order == "keys" and options.tree_merge != "average":
            yield f"--tree-merge {options.tree_merge}: --tree-order keys needs average"
        if options.tree_order == "keys" and options.selection_score != "level":
            yield f"--selection-score {options.selection_score}: --tree-order keys needs level"

    @classmethod
    def preset(cls, given: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns key order, unless the command line asks for the paper's tree."""
        as_in_paper = (
            given.get("tree_order") == "text"
            or given.get("tree_merge") not in (None, "average")
            or given.get("selection_score") == "cumulative"
        )
        by_keys = {} if as_in_paper else {"tree_order": "keys", "tree_merge": "average", "tree_beam": BEAM}
        return {**super().preset(given), **by_keys}

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield TreesOfBatch()
        if self.by_keys:
            yield Subtrees()
        yield from super().plans()

    def walk(self, key: SelectionKey) -> SelectionKey:
        return tree_beam(key, self.beam)

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, key: SelectionKey, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Returns, in text order, the path sums of V W^{Ks} at the leaves, V the nodes; in key order S W^{Ks}."""
        if self.by_keys:
            keys = self.sentence_k_proj(encodings).unflatten(-1, (self.heads, -1))
            return keys, lambda kernel: choose_by_keys(kernel, q_s, keys, layout, key, self.beam)
        trees = layout.plan(TreesOfBatch())
        nodes = self.sentence_k_proj(construct(encodings, trees, self.merge)).unflatten(-1, (self.heads, -1))
        sums = path_sums(nodes, trees)  # [nodes, H, d_k]
        keys, walked = sums[: layout.tokens.rows], sums if self.by_cumulative else nodes
        observe = observer(self)
        if observe is not None:
            scores = torch.einsum("nhd,mhd->nmh", q_s, walked) / math.sqrt(q_s.size(-1))
            observe(NodeRelevance(scores.detach(), self.by_cumulative))

        def choose(kernel: SelectionKernel) -> Tensor:
            found = kernel.choose_in_tree(q_s, walked, layout, self.walk(key))
            return best_of(found, q_s, keys, layout, key, kernel) if self.beam else found

        return keys, choose

"""Context mechanism ``tree``: conditional attention that finds its sentences in a tree ([T] sec. 3.3)."""

import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.conditional.attention import Choose, SelectingAttention, SelectionOptions
from docnmt_fairseq.context.conditional.beam import best_of, choose_by_keys, widened
from docnmt_fairseq.context.conditional.kernels import SelectionKernel
from docnmt_fairseq.context.conditional.key_order import Subtrees
from docnmt_fairseq.context.conditional.selection import SelectionKey
from docnmt_fairseq.context.conditional.tree import TreesOfBatch, construct, path_sums
from docnmt_fairseq.layers.capture import NodeRelevance, observer
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES
from docnmt_fairseq.options import Choices, option

SELECTION_SCORES = Choices(("level", "cumulative"))
BEAM = 16  # measured: 96 to 98 % of the exact t best of 112 sentences are found (benchmarks/results/selection.md)
TREE_ORDERS = Choices(("text", "keys"))


@CONTEXT_MECHANISMS.register("tree")
class TreeAttention(SelectingAttention):
    """Selection by a walk down a binary tree of sentence encodings, ~ t·log n scores a token instead of n.

    In the order of the text, R of a sentence found is its cumulative relevance, the sum of q·k/√d_k over its path from
    the root: q·(sum of the keys on the path)/√d_k. So the sums are the keys of relevance, and gradients reach the merge
    through them. In the order of the keys, which is ours, R is that of flat selection, and the tree only finds.
    """

    @dataclass(frozen=True)
    class Options(SelectionOptions):
        """How the tree is made and walked."""

        tree_merge: str = option("source2token", "how two nodes of the sentence tree make one", names=TREE_MERGES)
        selection_score: str = option(
            "level", "what decides which nodes of a height of the sentence tree are kept: level: their own relevance; "
            "cumulative: its sum from the root down", names=SELECTION_SCORES,
        )  # fmt: skip

        tree_order: str = option(
            "text", "which sentences are neighbours in the tree: text: those in the document, as in [T]; keys: those "
            "alike, for each head; then inner nodes have the mean of the keys below, and R is that of flat selection",
            names=TREE_ORDERS,
        )  # fmt: skip
        tree_beam: int = option(
            0, "nodes of a height that the walk keeps, if that is more than t; the t best sentences found are selected",
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
        """See :class:`ContextMechanism`."""
        yield from super().problems(options)
        if options.tree_order == "keys" and options.tree_merge != "average":
            yield f"--tree-order keys: has no --tree-merge {options.tree_merge}, its nodes are means: average"
        if options.tree_order == "keys" and options.selection_score != "level":
            yield f"--tree-order keys: has no --selection-score {options.selection_score}: level"

    @classmethod
    def preset(cls, given: Mapping[str, Any]) -> Dict[str, Any]:
        """See :class:`ContextMechanism`: a tree in the order of keys, unless the command line asks for the paper's."""
        of_paper = (
            given.get("tree_order") == "text"
            or given.get("tree_merge") not in (None, "average")
            or given.get("selection_score") == "cumulative"
        )
        by_keys = {} if of_paper else {"tree_order": "keys", "tree_merge": "average", "tree_beam": BEAM}
        return {**super().preset(given), **by_keys}

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`ContextMechanism`."""
        yield TreesOfBatch()
        if self.by_keys:
            yield Subtrees()
        yield from super().plans()

    def walk(self, key: SelectionKey) -> SelectionKey:
        """See :class:`SelectingAttention`."""
        return widened(key, self.beam)

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, key: SelectionKey, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Of leaves in the order of the text the path sums of V W^{Ks}, V the nodes; else S W^{Ks}."""
        if self.by_keys:
            keys = self.sentence_k_proj(encodings).unflatten(-1, (self.heads, -1))
            return keys, lambda kernel: choose_by_keys(kernel, q_s, keys, layout, key, self.beam)
        trees = layout.plan(TreesOfBatch())
        of_nodes = self.sentence_k_proj(construct(encodings, trees, self.merge)).unflatten(-1, (self.heads, -1))
        sums = path_sums(of_nodes, trees)  # [nodes, H, d_k]
        keys, walked = sums[: layout.tokens.rows], sums if self.by_cumulative else of_nodes
        observe = observer(self)
        if observe is not None:
            scores = torch.einsum("nhd,mhd->nmh", q_s, walked) / math.sqrt(q_s.size(-1))
            observe(NodeRelevance(scores.detach(), self.by_cumulative))

        def choose(kernel: SelectionKernel) -> Tensor:
            found = kernel.choose_in_tree(q_s, walked, layout, self.walk(key))
            return best_of(found, q_s, keys, layout, key, kernel) if self.beam else found

        return keys, choose

"""Context mechanism ``tree``: conditional attention that finds its sentences in a tree ([T] sec. 3.3)."""

import math
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.conditional.attention import Choose, SelectingAttention, SelectionOptions
from docnmt_fairseq.context.conditional.kernels import SelectionKernel
from docnmt_fairseq.context.conditional.selection import SelectionKey
from docnmt_fairseq.context.conditional.tree import TreesOfBatch, construct, path_sums
from docnmt_fairseq.layers.recording import NodeRelevance, observer
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES
from docnmt_fairseq.options import Choices, option

SELECTION_SCORES = Choices(("level", "cumulative"))


@CONTEXT_MECHANISMS.register("tree")
class TreeAttention(SelectingAttention):
    """Selection by a walk down a binary tree of sentence encodings, ~ t·log n scores a token instead of n.

    R of a sentence found is its cumulative relevance, the sum of q·k/√d_k over its path from the root: q·(sum of the
    keys on the path)/√d_k. So the sums are the keys of relevance, and gradients reach the merge through them.
    """

    @dataclass(frozen=True)
    class Options(SelectionOptions):
        """How the tree is made and walked."""

        tree_merge: str = option("source2token", "how two nodes of the sentence tree make one", names=TREE_MERGES)
        selection_score: str = option(
            "level", "what decides which nodes of a height of the sentence tree are kept: level: their own relevance; "
            "cumulative: its sum from the root down", names=SELECTION_SCORES,
        )  # fmt: skip

    in_tree = True

    def __init__(self, layer: LayerConfig, options: "TreeAttention.Options"):
        super().__init__(layer, options)
        self.by_cumulative = options.selection_score == "cumulative"
        self.merge = TREE_MERGES[options.tree_merge](layer.embed_dim, layer.embed_dim // layer.head_dim)

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`ContextMechanism`."""
        yield TreesOfBatch()
        yield from super().plans()

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, selection: SelectionKey, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """The leaves' path sums of V W^{Ks}, V the nodes; see :class:`SelectingAttention`."""
        trees = layout.plan(TreesOfBatch())
        keys = self.sentence_k_proj(construct(encodings, trees, self.merge)).unflatten(-1, (self.heads, -1))
        sums = path_sums(keys, trees)  # [nodes, H, d_k]
        walked = sums if self.by_cumulative else keys
        observe = observer(self)
        if observe is not None:
            scores = torch.einsum("nhd,mhd->nmh", q_s, walked) / math.sqrt(q_s.size(-1))
            observe(NodeRelevance(scores.detach(), self.by_cumulative))

        def choose(kernel: SelectionKernel) -> Tensor:
            return kernel.choose_in_tree(q_s, walked, layout, selection)

        return sums[: layout.tokens.rows], choose

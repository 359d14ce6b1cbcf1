"""Context mechanism ``tree``: conditional attention that finds its sentences in a tree ([T] sec. 3.3)."""

import math
from typing import Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.conditional_attention import Choose, SelectingAttention
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig
from docnmt_fairseq.modules.kernels import SelectionKernel
from docnmt_fairseq.modules.recording import NodeRelevance, observer
from docnmt_fairseq.modules.sentence_tree import SentenceTrees, construct, path_sums
from docnmt_fairseq.modules.tree_merges import TREE_MERGES


@CONTEXT_MECHANISMS.register("tree")
class TreeAttention(SelectingAttention):
    """Selection by a walk down a binary tree of sentence encodings, ~ t·log n scores a word instead of n.

    R of a sentence found is its cumulative relevance, the sum of q·k/√d_k over its path from the root: q·(sum of the
    keys on the path)/√d_k. So the sums are the keys of relevance, and gradients reach the merge through them.
    """

    def __init__(self, config: ContextConfig):
        super().__init__(config)
        self.by_cumulative = config.selection_score == "cumulative"
        self.merge = TREE_MERGES[config.tree_merge](config.embed_dim, config.embed_dim // config.head_dim)

    def sentence_keys(
        self, encodings: Tensor, q_s: Tensor, kept: np.ndarray, layout: DocumentLayout
    ) -> Tuple[Tensor, Optional[Choose]]:
        """Returns the leaves' path sums of V W^{Ks}, V the nodes; see :class:`SelectingAttention`."""
        trees = SentenceTrees.of(layout)
        keys = self.sentence_k_proj(construct(encodings, trees, self.merge)).unflatten(-1, (self.heads, -1))
        sums = path_sums(keys, trees)  # [nodes, H, d_k]
        walked = sums if self.by_cumulative else keys
        observe = observer(self)
        if observe is not None:
            scores = torch.einsum("nhd,mhd->nmh", q_s, walked) / math.sqrt(q_s.size(-1))
            observe(NodeRelevance(scores.detach(), self.by_cumulative))

        def choose(kernel: SelectionKernel, documents: Optional[np.ndarray]) -> Tensor:
            return kernel.choose_in_tree(q_s, walked, trees, layout, kept, documents)

        return sums[: layout.words.rows], choose

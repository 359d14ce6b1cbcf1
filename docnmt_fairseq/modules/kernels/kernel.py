"""The contract of kernels: choose sentences, flat or in a tree, score the chosen, attend to their words."""

from typing import Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.registry import Registry
from docnmt_fairseq.modules.sentence_selection import Selection
from docnmt_fairseq.modules.sentence_tree import SentenceTrees
from docnmt_fairseq.modules.tree_selection import choose_in_tree


class SelectionKernel:
    """Contract: the three steps of conditional attention, on packed tensors.

    Symbols: N words and R sentences of the batch, H heads; M selecting words, each with t places for sentences.
    """

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns whether the kernel can compute on such tensors here."""
        raise NotImplementedError

    def missing(self) -> Optional[str]:
        """Returns why the kernel cannot be had on this machine at all; None: it can."""
        return None

    def choose(
        self, q: Tensor, k: Tensor, layout: DocumentLayout, kept: np.ndarray, documents: Optional[np.ndarray] = None
    ) -> Tensor:
        """Returns KeepTopT ([T] eq. 3-4): the rows of the sentences that every head and word keeps, −1: none.

        Without gradient. The lowest sentence comes first among equals; float32 at least.

        Args:
            q: [N, H, d_k] x W^{Qs} of every word.
            k: [R, H, d_k] S W^{Ks} of every sentence.
            layout: the batch.
            kept: [D] t of every document; more than its sentences: all of them.
            documents: those whose words select, ascending; None: all.

        Returns:
            [M, H, most] int64, M the words of ``documents``, most the largest t in use.
        """
        raise NotImplementedError

    def choose_in_tree(
        self,
        q: Tensor,
        keys: Tensor,
        trees: SentenceTrees,
        layout: DocumentLayout,
        kept: np.ndarray,
        documents: Optional[np.ndarray] = None,
    ) -> Tensor:
        """Returns TraverseTree ([T] sec. 3.3.2): the rows of the sentences that every head and word finds, −1: none.

        A height of the tree at a time, root to leaves: the children of the nodes kept so far are scored by q·k, and the
        t best kept, the leftmost first among equals. Without gradient, float32 at least. The sentences of a word are
        ascending, −1 comes last.

        Args:
            q: [N, H, d_k] x W^{Qs} of every word.
            keys: [nodes, H, d_k] of every node, in the format of ``sentence_tree``: its own key where each height is
                cut by its own scores, the sum over its path where by cumulative scores.
            trees: of the batch.
            layout: the batch.
            kept: [D] t of every document; more than its sentences: all of them.
            documents: those whose words select, ascending; None: all.

        Returns:
            [M, H, most] int64, M the words of ``documents``, most the largest t in use.
        """
        return choose_in_tree(q, keys, trees, layout, kept, documents)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R = q·k/√d_k of the chosen sentences, [M, H, t], −∞ at places that hold none.

        Args:
            q: [N, H, d_k] queries of every word.
            k: [R, H, d_k] keys of every sentence.
            items: [M] the words that select.
            sentence: [M, H, t] rows of the chosen sentences, −1: none.
        """
        raise NotImplementedError

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, selection: Selection, layout: DocumentLayout, dropout: float
    ) -> Tensor:
        """Returns Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w over the selected sentences' words ([T] eq. 7).

        Args:
            q, k, v: [N, H, d_k] packed word states.
            selection: of M words.
            layout: the batch.
            dropout: probability of dropping an attention weight.

        Returns:
            [M, H, d_k].
        """
        raise NotImplementedError


KERNELS: Registry[SelectionKernel] = Registry("kernel")

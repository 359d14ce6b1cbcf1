"""The contract of kernels: choose sentences, flat or in a tree, score the chosen, attend to their tokens."""

from typing import Any, Iterator, Optional

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey
from docnmt_fairseq.context.conditional.tree_search import Walks, choose_in_tree
from docnmt_fairseq.registry import Registry


class SelectionKernel:
    """Contract: the three steps of conditional attention, on packed tensors.

    Symbols: N tokens and R sentences of the batch, H heads; M selecting tokens, each with t places for sentences.
    Which tokens select, and t of every document, is what a key of
    :class:`~docnmt_fairseq.context.conditional.selection.SelectionPlan` names.
    """

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Whether the kernel can compute on such tensors here."""
        raise NotImplementedError

    def preferred(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Whether ``auto`` takes the kernel for such tensors, where none is preferred to it; it serves them, then."""
        return self.serves(device, dtype)

    def missing(self) -> Optional[str]:
        """Why the kernel cannot be had on this machine at all; None: it can."""
        return None

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        """The plans that the kernel will ask a layout for.

        Args:
            key: names which tokens select, and t.
            keeps_own: whether a token's own sentence is kept besides the t.
            walk: of sentences that are chosen in a tree, names how many nodes of a height are kept; None: they are not.
        """
        if walk is not None:
            yield Walks(walk)

    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """KeepTopT ([T] eq. 3-4): the rows of the sentences that every head and token keeps, −1: none.

        Without gradient. The lowest sentence comes first among equals; float32 at least.

        Args:
            q: [N, H, d_k] x W^{Qs} of every token.
            k: [R, H, d_k] S W^{Ks} of every sentence.
            layout: the batch.
            key: names which tokens select, and t.

        Returns:
            [M, H, most] int64, most the largest t in use.
        """
        raise NotImplementedError

    def choose_in_tree(self, q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """TraverseTree ([T] sec. 3.3.2): the rows of the sentences that every head and token finds, −1: none.

        A height of the tree at a time, root to leaves: the children of the nodes kept so far are scored by q·k, and the
        t best kept, the leftmost first among equals. Without gradient, float32 at least. The sentences of a token are
        ascending, −1 comes last.

        Args:
            q: [N, H, d_k] x W^{Qs} of every token.
            keys: [nodes, H, d_k] of every node of the batch's trees, in the format of ``conditional.tree``: its own
                key where each height is cut by its own scores, the sum over its path where by cumulative scores.
            layout: the batch.
            key: names which tokens select, and t.

        Returns:
            [M, H, most] int64, most the largest t in use.
        """
        return choose_in_tree(q, keys, layout, key)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """R = q·k/√d_k of the chosen sentences, [M, H, t], −∞ at places that hold none.

        Args:
            q: [N, H, d_k] queries of every token.
            k: [R, H, d_k] keys of every sentence.
            items: [M] the tokens that select.
            sentence: [M, H, t] rows of the chosen sentences, −1: none.
        """
        raise NotImplementedError

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w over selected sentences' tokens ([T] eq. 7).

        Args:
            q, k, v: [N, H, d_k] packed token states.
            layout: the batch.
            selection: of M tokens.
            dropout: probability of dropping an attention weight.

        Returns:
            [M, H, d_k].
        """
        raise NotImplementedError


KERNELS: Registry[SelectionKernel] = Registry("kernel")

"""Contract of kernels, which select sentences, score them and attend to their tokens; and the choice of a kernel."""

import functools
import logging
import math
from typing import Any, Iterator, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.kernels.pytorch.tree_walk import Walks, choose_in_tree
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.precision import computing_type, stable_top_k, without_autocast
from docnmt_fairseq.registry import Registry

logger = logging.getLogger(__name__)
FASTEST = {"cpu": "compiled", "cuda": "triton"}  # if available, by device type; otherwise ``torch``


class SelectionKernel:
    """Contract: the three steps of conditional attention on packed tensors.

    Symbols: N tokens and R sentences of the batch, H heads; M tokens that select, each with t places for sentences.
    These tokens, and t of every document, are named by a key of
    :class:`~docnmt_fairseq.context.conditional.selection.SelectionPlan`.
    """

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns whether the kernel can compute such tensors on this machine."""
        raise NotImplementedError

    def preferred(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns whether ``auto`` takes the kernel for such tensors; it then serves them."""
        return self.serves(device, dtype)

    def missing(self) -> Optional[str]:
        """Returns the reason why the kernel is not available on this machine; None if it is."""
        return None

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        """Yields the plans that the kernel needs.

        Args:
            keeps_own: whether a token's own sentence is kept in addition to the t.
            walk: nodes of a height that a tree walk keeps; None without a tree.
        """
        if walk is not None:
            yield Walks(walk)

    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """KeepTopT ([T] eq. 3-4): returns the rows of the sentences that every head and token keeps, −1: none.

        No gradient; of equal scores the lowest sentence comes first; float32 at least.

        Args:
            q: [N, H, d_k] x W^{Qs} of every token.
            k: [R, H, d_k] S W^{Ks} of every sentence.

        Returns:
            [M, H, max_t] int64.
        """
        raise NotImplementedError

    def choose_in_tree(self, q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """TraverseTree ([T] sec. 3.3.2): returns the rows of the sentences that every head and token finds, −1: none.

        One height at a time, from root to leaves: the children of the kept nodes are scored by q·k and the t best kept,
        of equal scores the leftmost first. No gradient, float32 at least. The sentences of a token are ascending, −1
        comes last.

        Args:
            q: [N, H, d_k] x W^{Qs} of every token.
            keys: [nodes, H, d_k] of every node of the batch's trees, in the format of ``conditional.tree``: the node's
                own key if nodes are ranked by their own scores, the sum over its path if by cumulative scores.

        Returns:
            [M, H, max_t] int64.
        """
        return choose_in_tree(q, keys, layout, key)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R = q·k/√d_k of the selected sentences, [M, H, t], −∞ at empty places.

        Args:
            q: [N, H, d_k] queries of every token.
            k: [R, H, d_k] keys of every sentence.
            items: [M] tokens that select.
            sentence: [M, H, t] rows of the selected sentences, −1: none.
        """
        raise NotImplementedError

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """Returns Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w over selected sentences' tokens ([T] eq. 7).

        Args:
            q, k, v: [N, H, d_k] packed token states.

        Returns:
            [M, H, d_k].
        """
        raise NotImplementedError


KERNELS: Registry[SelectionKernel] = Registry("kernel")


def kernel_for(name: str, x: Tensor) -> SelectionKernel:
    """Returns the kernel of that name; for ``auto`` the fastest one for tensors like x.

    Raises:
        InputError: the named kernel is not available or does not support such tensors.
        ValueError: unknown name.
    """
    if name != "auto":
        kernel = KERNELS[name]()
        if not kernel.serves(x.device, x.dtype):
            reason = kernel.missing() or f"does not support {x.dtype} on {x.device.type}"
            raise InputError(f"--context-kernel {name}: {reason}")
        return kernel
    fastest = FASTEST.get(x.device.type, "torch")
    kernel = KERNELS[fastest]()
    if kernel.preferred(x.device, x.dtype):
        return kernel
    if kernel.missing():
        _warn_once(f"attention kernel {fastest!r} is not available: {kernel.missing()}; using a slower one")
    return KERNELS["torch"]()


@functools.cache
def _warn_once(message: str) -> None:
    logger.warning(message)


@KERNELS.register("dense")
class DenseKernel(SelectionKernel):
    """One matrix of all tokens by all tokens, −∞ outside selected sentences and between documents."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        return True

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        plan = layout.plan(key)
        document = layout.token_document.index_select(0, plan.items)
        with without_autocast(q):
            relevance = _products(q.index_select(0, plan.items), k)  # [M, H, R]
        relevance = relevance.masked_fill(document[:, None, None] != layout.sentences.item_row, -torch.inf)
        _, sentence = stable_top_k(relevance, plan.max_t)
        return sentence.masked_fill(torch.arange(sentence.size(-1), device=q.device) >= plan.limit, -1)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        with without_autocast(q):
            relevance = _products(q.index_select(0, items), k) / math.sqrt(q.size(-1))
        return relevance.gather(-1, sentence.clamp(min=0)).masked_fill(sentence < 0, -torch.inf)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        row = selection.sentence.masked_fill(selection.sentence < 0, layout.tokens.rows)  # an extra column, cut off
        relevance = selection.scores.new_full((*row.shape[:2], layout.tokens.rows + 1), -torch.inf)
        relevance = relevance.scatter(-1, row, selection.scores)[..., layout.token_sentence]  # [M, H, N]
        with without_autocast(q):
            logits = _products(q.index_select(0, selection.items), k) / math.sqrt(q.size(-1)) + relevance
            weights = F.dropout(torch.softmax(logits, dim=-1), dropout, training=dropout > 0)
            return torch.einsum("mhn,nhd->mhd", weights, v.to(weights.dtype)).to(q.dtype)


def _products(q: Tensor, k: Tensor) -> Tensor:
    """Returns q·k of all pairs, [M, H, K], from [M, H, d_k] and [K, H, d_k]."""
    dtype = computing_type(q.dtype)
    return torch.einsum("mhd,khd->mhk", q.to(dtype), k.to(dtype))

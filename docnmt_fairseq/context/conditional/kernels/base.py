"""Contract of kernels, with its implementation in PyTorch, and the choice of a kernel.

A kernel selects sentences, scores them and attends to their tokens. In PyTorch, tokens of large documents attend to
selected sentences only (``grouped_attention``). Small documents are computed as a whole with other sentences masked
(:func:`attend_masked`), which is faster while N is small.
"""

import functools
import logging
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionBlock, AttentionPlan, Ragged
from docnmt_fairseq.context.conditional.kernels.grouped_attention import AttendGrouped, SentenceBuckets
from docnmt_fairseq.context.conditional.kernels.tree_walk import Walks, choose_in_tree
from docnmt_fairseq.context.conditional.selection import Candidates, Selection, SelectionKey
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.attention import ragged_attention
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, stable_top_k, without_autocast

logger = logging.getLogger(__name__)
FASTEST = {"cpu": "compiled", "cuda": "triton"}  # if available, by device type; otherwise ``torch``
TOKENS_PER_PLACE = 100  # documents of up to this many tokens per kept sentence are faster as a whole (measured)
CHUNK = 2**18  # relevance scores, or elements of gathered keys, held at a time on a CPU
PASSES = 2**10  # up to t·n of these, t passes for the maximum are faster than sorting on a CPU
HIDDEN = -1e30  # no weight after softmax; −∞ times the zeros of e_w would be NaN
ALIGNMENT = 8  # kernels are fastest for widths that are multiples of it


class SelectionKernel:
    """The steps of conditional attention on packed tensors; subclasses compute some of them faster.

    Symbols: N tokens and R sentences of the batch, H heads; M tokens that select, each with t places for sentences.
    These tokens, and t of every document, are named by a key of
    :class:`~docnmt_fairseq.context.conditional.selection.SelectionPlan`.
    """

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns whether the kernel can compute such tensors on this machine."""
        return True

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
        yield Candidates(key)
        yield BySize(key, int(keeps_own))
        if walk is not None:
            yield Walks(walk)

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """KeepTopT ([T] eq. 3-4): returns the rows of the sentences that every head and token keeps, −1: none.

        No gradient; of equal scores the lowest sentence comes first; float32 at least.

        Args:
            q: [N, H, d_k] x W^{Qs} of every token.
            k: [R, H, d_k] S W^{Ks} of every sentence.

        Returns:
            [M, H, max_t] int64.
        """
        # Tokens are processed in chunks, so that relevance is never held as a whole.
        plan, max_t = layout.plan(Candidates(key)), layout.plan(key).max_t
        chosen = []
        with without_autocast(q):
            for block, beyond_t in zip(plan.attention.blocks, plan.beyond_t):
                place = _most_relevant(q, k, block, max_t)  # [b, w, H, ≤ max_t]
                rows = (place + block.key[:, :1, None, None]).masked_fill_(beyond_t, -1)
                missing = max_t - rows.size(-1)
                chosen.append(F.pad(rows, (0, missing), value=-1) if missing else rows)
        return plan.attention.gather(chosen)

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
        return SelectedScores.apply(q, k, items, sentence)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """Returns Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w over selected sentences' tokens ([T] eq. 7).

        Args:
            q, k, v: [N, H, d_k] packed token states.

        Returns:
            [M, H, d_k].
        """
        plan = layout.plan(BySize(selection.key, selection.sentence.size(-1) - layout.plan(selection.key).max_t))
        outputs = []
        if plan.small is not None:
            outputs.append(attend_masked(q, k, v, *_part(selection, plan.small_items), plan.small, dropout))
        if plan.large is not None:
            sentence, scores = _part(selection, plan.large_items)
            queries = q if len(plan.large_tokens) == len(q) else q.index_select(0, plan.large_tokens)
            outputs.append(AttendGrouped.apply(queries, k, v, scores, sentence, plan.large, dropout))
        return outputs[0] if plan.order is None else torch.cat(outputs).index_select(0, plan.order)


def _part(selection: Selection, tokens: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """Returns sentences and scores of some of the tokens that select; None: of all."""
    if tokens is None:
        return selection.sentence, selection.scores
    return selection.sentence.index_select(0, tokens), selection.scores.index_select(0, tokens)


def _most_relevant(q: Tensor, k: Tensor, block: AttentionBlock, max_t: int) -> Tensor:
    """Returns the indices of the most relevant sentences within their documents, [b, w, H, min(max_t, n)]."""
    heads, n = q.size(1), block.key.size(1)
    dtype, t = computing_type(q.dtype), min(max_t, n)
    keys = k.index_select(0, block.key.flatten()).to(dtype).unflatten(0, block.key.shape).permute(0, 2, 3, 1)
    places = torch.empty(*block.query.shape, heads, t, dtype=torch.long, device=q.device)
    for chunk in _chunks(block.query.shape, max(1, chunk_elements(q.device, CHUNK) // (heads * n))):
        index = block.query[chunk]
        queries = q.index_select(0, index.flatten()).to(dtype).unflatten(0, index.shape).transpose(1, 2)
        relevance = queries @ keys[chunk[0]]  # [b, H, w, n] of the chunk
        if block.key_padding is not None:
            relevance.masked_fill_(block.key_padding[chunk[0], None, None, :], -torch.inf)
        places[chunk] = largest(relevance, t).transpose(1, 2)
    return places


def _chunks(shape: Sequence[int], size: int) -> Iterator[Tuple[slice, slice]]:
    """Yields slices of rows and columns of about ``size`` elements each."""
    rows, columns = max(1, size // shape[1]), min(size, shape[1])
    for row in range(0, shape[0], rows):
        for column in range(0, shape[1], columns):
            yield slice(row, row + rows), slice(column, column + columns)


def largest(relevance: Tensor, t: int) -> Tensor:
    """Returns the indices of the t largest values of the last dimension, largest first, of equal values the first one.

    Args:
        relevance: [..., n], overwritten.
        t: at most n.
    """
    if t * relevance.size(-1) > PASSES or relevance.device.type != "cpu":
        return stable_top_k(relevance, t)[1]
    places = relevance.new_empty(*relevance.shape[:-1], t, dtype=torch.long)
    for rank in range(t):
        highest = relevance.max(-1, keepdim=True).indices  # the first of equal values
        places[..., rank : rank + 1] = highest
        relevance.scatter_(-1, highest, -torch.inf)
    return places


class SelectedScores(torch.autograd.Function):
    """R = q·k/√d_k of selected sentences ([T] eq. 3), −∞ at empty places; keys are gathered in chunks."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R, [M, H, t], float32 at least; see ``SelectionKernel.score``."""
        ctx.save_for_backward(q, k, items, sentence)
        t, d = sentence.size(-1), q.size(-1)
        queries, keys, row = _flat_rows(q, k, items, sentence)
        step = max(1, chunk_elements(q.device, CHUNK) // (t * d))
        with without_autocast(q):
            parts = [
                torch.bmm(keys.index_select(0, places.flatten()).view(-1, t, d), query.unsqueeze(-1))
                for query, places in zip(queries.split(step), row.split(step))
            ]
        scores = torch.cat(parts).view(sentence.shape)
        return scores.mul_(1 / math.sqrt(d)).masked_fill_(sentence < 0, -torch.inf)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor, None, None]:
        """Returns the gradients of q and k: weighted sums over the selected keys, and over the selecting tokens."""
        q, k, items, sentence = ctx.saved_tensors
        queries, keys, row = _flat_rows(q, k, items, sentence)
        weight = (grad * (1 / math.sqrt(q.size(-1)))).masked_fill_(sentence < 0, 0).flatten(0, 1)
        grad_queries = F.embedding_bag(row, keys, mode="sum", per_sample_weights=weight)
        grad_q = torch.zeros_like(q).index_copy_(0, items, grad_queries.view(-1, *q.shape[1:]).to(q.dtype))
        sorted_row, pair = torch.sort(row.flatten(), stable=True)
        first = torch.searchsorted(sorted_row, torch.arange(len(keys), device=q.device))
        query = pair.div(row.size(1), rounding_mode="floor")
        weight = weight.flatten().index_select(0, pair)
        grad_keys = F.embedding_bag(query, queries, first, mode="sum", per_sample_weights=weight)
        return grad_q, grad_keys.view_as(k).to(k.dtype), None, None


def _flat_rows(q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """Returns queries of ``items`` [M·H, d_k], keys [R·H, d_k] and rows of the selected keys [M·H, t], −1 as 0."""
    heads, dtype = q.size(1), computing_type(q.dtype)
    queries = q.index_select(0, items) if len(items) < len(q) else q
    row = sentence.clamp(min=0) * heads + torch.arange(heads, device=q.device)[:, None]
    return queries.to(dtype).flatten(0, 1), k.to(dtype).flatten(0, 1), row.flatten(0, 1)


@dataclass(frozen=True)
class MaskedPlan:
    """Small documents, computed as a whole."""

    items: Tensor  # [M] their tokens
    tokens: AttentionPlan  # these attend to all tokens of their document
    first: Tensor  # [M] first sentence of the document of every token
    place: Tensor  # [M] index of the token's sentence in the document
    max_sentences: int  # the largest number of sentences

    @classmethod
    def of(cls, layout: DocumentLayout, documents: np.ndarray) -> "MaskedPlan":
        """Creates the plan of some documents, ascending."""
        rows, sentences = Ragged(layout.document_tokens.lengths[documents], layout.device), layout.sentences
        first = np.repeat(sentences.offsets[documents], rows.lengths)
        lengths = layout.tokens.lengths[sentences.items_of(documents)]
        own = np.repeat(sentences.items_of(documents), lengths)
        return cls(
            items=layout.index(layout.document_tokens.items_of(documents)),
            tokens=AttentionPlan(rows, rows),
            first=layout.index(first),
            place=layout.index(own - first),
            max_sentences=int(sentences.lengths[documents].max()),
        )


def attend_masked(
    q: Tensor, k: Tensor, v: Tensor, sentence: Tensor, scores: Tensor, plan: MaskedPlan, dropout: float
) -> Tensor:
    """Attention to selected sentences, [M, H, d_k], at the cost of all tokens of their documents.

    With R spread over the document's sentences (−10^30 where none is kept) and e_w the one-hot vector of token w's
    sentence, q_i k_w/√d_k + R_{i, sentence(w)} = [q_i; √d_k R_i] [k_w; e_w]/√d_k: plain attention without a mask, so
    PyTorch's own kernels apply, which hold no N×N matrix either (except for dropout on a CPU).
    """
    d, dtype = q.size(-1), computing_type(q.dtype)
    width = plan.max_sentences + 1  # the last one is for empty places
    width += -(d + width) % ALIGNMENT
    if len(plan.items) < len(q):
        q, k, v = (x.index_select(0, plan.items) for x in (q, k, v))
    with without_autocast(q):
        none = sentence < 0
        place = (sentence - plan.first[:, None, None]).masked_fill(none, width - 1)
        spread = scores.new_full((*scores.shape[:2], width), HIDDEN)
        spread = spread.scatter(-1, place, (scores * math.sqrt(d)).masked_fill(none, HIDDEN))
        one_hot = (plan.place[:, None, None] == torch.arange(width, device=q.device)).to(dtype)  # e, [M, 1, width]
        queries = torch.cat([q.to(dtype), spread.to(dtype)], dim=-1)
        keys = torch.cat([k.to(dtype), one_hot.expand(-1, q.size(1), -1)], dim=-1)
        values = F.pad(v.to(dtype), (0, width))  # the fast CPU kernel needs values as wide as keys
        attended = ragged_attention(queries, keys, values, plan.tokens, dropout, scale=1 / math.sqrt(d))
        return attended[..., :d].to(q.dtype)


@dataclass(frozen=True)
class SizePlan:
    """Tokens that select, by the size of their documents."""

    small: Optional[MaskedPlan]  # documents computed as a whole; None without any
    large: Optional[SentenceBuckets]  # the sentences of the batch by length, for the others; None without any
    large_tokens: Tensor  # [·] tokens of these others
    # [·] indices of the tokens of small documents among all that select; None: all
    small_items: Optional[Tensor] = None
    large_items: Optional[Tensor] = None
    # [M] index of every token in those of small documents followed by those of large ones; None if there are only small
    # or only large ones
    order: Optional[Tensor] = None


@dataclass(frozen=True)
class BySize(PlanKey[SizePlan]):
    """Tokens that select, by the size of their documents."""

    selection: SelectionKey
    extra_places: int = 0  # places for sentences per token in addition to t

    def make(self, layout: DocumentLayout) -> SizePlan:
        plan = layout.plan(self.selection)
        places = plan.max_t + self.extra_places
        is_small = layout.document_tokens.lengths[plan.documents] <= TOKENS_PER_PLACE * places
        parts = plan.documents[is_small], plan.documents[~is_small]
        small = MaskedPlan.of(layout, parts[0]) if len(parts[0]) else None
        tokens = layout.document_tokens.items_of(parts[1])
        large = SentenceBuckets.of(layout.tokens, len(tokens) * places) if len(tokens) else None
        large_tokens = layout.index(tokens)
        if small is None or large is None:
            return SizePlan(small, large, large_tokens)
        token_is_small = np.repeat(is_small, layout.document_tokens.lengths[plan.documents])
        numbers = np.flatnonzero(token_is_small), np.flatnonzero(~token_is_small)
        order = np.argsort(np.concatenate(numbers))
        return SizePlan(small, large, large_tokens, *map(layout.index, (*numbers, order)))


class DenseKernel(SelectionKernel):
    """Attends by one matrix of all tokens by all tokens, −∞ outside selected sentences and between documents."""

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        row = selection.sentence.masked_fill(selection.sentence < 0, layout.tokens.rows)  # an extra column, cut off
        relevance = selection.scores.new_full((*row.shape[:2], layout.tokens.rows + 1), -torch.inf)
        relevance = relevance.scatter(-1, row, selection.scores)[..., layout.token_sentence]  # [M, H, N]
        with without_autocast(q):
            dtype = computing_type(q.dtype)
            logits = torch.einsum("mhd,nhd->mhn", q.index_select(0, selection.items).to(dtype), k.to(dtype))
            logits = logits / math.sqrt(q.size(-1)) + relevance
            weights = F.dropout(torch.softmax(logits, dim=-1), dropout, training=dropout > 0)
            return torch.einsum("mhn,nhd->mhd", weights, v.to(weights.dtype)).to(q.dtype)


KERNELS: Dict[str, SelectionKernel] = {"dense": DenseKernel(), "torch": SelectionKernel()}


def kernel_for(name: str, x: Tensor) -> SelectionKernel:
    """Returns the kernel of that name; for ``auto`` the fastest one for tensors like x.

    Raises:
        InputError: the named kernel is not available or does not support such tensors.
    """
    if name != "auto":
        kernel = KERNELS[name]
        if not kernel.serves(x.device, x.dtype):
            reason = kernel.missing() or f"does not support {x.dtype} on {x.device.type}"
            raise InputError(f"--context-kernel {name}: {reason}")
        return kernel
    fastest = FASTEST.get(x.device.type, "torch")
    kernel = KERNELS[fastest]
    if kernel.preferred(x.device, x.dtype):
        return kernel
    if kernel.missing():
        _warn_once(f"attention kernel {fastest!r} is not available: {kernel.missing()}; using a slower one")
    return KERNELS["torch"]


@functools.cache
def _warn_once(message: str) -> None:
    logger.warning(message)

"""Attention to selected sentences at the cost of their tokens only, with a backward pass that recomputes ([T] eq. 7).

Queries of one sentence attend together in blocks, a few heads at a time: no N×N matrix is built, and results of pairs
of a token and a kept sentence are held for a few heads only. Only the assignment of pairs to blocks is kept for the
backward pass, which waits for a GPU once.

Forward: the relevance R is constant within a (token, sentence) pair, so with o_{i,s} and l_{i,s} the attention output
and the log-sum-exp of token i over the tokens of sentence s alone, out_i = Σ_s softmax_s(R_{i,s} + l_{i,s}) o_{i,s}.

Backward: with L_i the log-sum-exp of token i over all its tokens, P = exp(q kᵀ/√d_k + R − L) are the weights of the
whole softmax, δ = rowsum(dO ⊙ O), dS = P ⊙ (dO vᵀ − δ), dR = rowsum(dS), dq = dS k/√d_k, dk = dSᵀ q/√d_k, dv = Pᵀ dO.
Dropout multiplies P by a mask D after the softmax: dS = P ⊙ (D ⊙ dO vᵀ − δ), dv = (P ⊙ D)ᵀ dO, δ as before.
"""

import math
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.ragged import Ragged, cheapest_groups
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast

CHUNK = 2**20  # elements of the pairs' results held at a time on a CPU: heads are grouped accordingly
Masks = Optional[Callable[[Tensor], Tensor]]  # returns the next dropout mask, 0 or 1/(1 − p), of a tensor's shape
BLOCK = 32  # queries that attend together; a sentence has about m·t
BUCKET_COST = 2**14  # cost of one more bucket of sentences, in pairs of a query and a key of one head


@dataclass(frozen=True)
class SentenceBucket:
    """Sentences of similar length, padded together."""

    sentences: int  # s
    width: int  # length of the longest sentence
    index: Tensor  # [s · width] token at every place; padding repeats the last one
    items: Tensor  # [tokens] the tokens, sentence by sentence
    real: Tensor  # [tokens] their places
    hidden: Optional[Tensor]  # [s, width] float32, −∞ at padding and 0 at tokens; None without padding

    @classmethod
    def of(cls, tokens: Ragged, rows: np.ndarray) -> "SentenceBucket":
        """Creates the bucket of some sentences."""
        index, padding = tokens.block(rows)
        real = np.flatnonzero(~padding)
        return cls(
            sentences=index.shape[0],
            width=index.shape[1],
            index=tokens.index(index.ravel()),
            items=tokens.index(index.ravel()[real]),
            real=tokens.index(real),
            hidden=tokens.index(np.where(padding, np.float32(-np.inf), np.float32(0))) if padding.any() else None,
        )

    def pad(self, packed: Tensor) -> Tensor:
        """Returns [s, H, width, d] from packed tokens [N, H, d]."""
        return packed.index_select(0, self.index).unflatten(0, (self.sentences, self.width)).transpose(1, 2)

    def unpad(self, padded: Tensor, packed: Tensor) -> None:
        """Writes [s, H, width, d] to packed tokens [N, H, d]."""
        items = padded.transpose(1, 2).flatten(0, 1)
        packed.index_copy_(0, self.items, items if self.hidden is None else items.index_select(0, self.real))


@dataclass(frozen=True)
class SentenceBuckets:
    """All sentences of a batch by length."""

    buckets: List[SentenceBucket]
    first: np.ndarray  # [buckets + 1] rank of each bucket's first sentence, then R
    place: Tensor  # [R + 1] rank by length of every sentence; the last entry is for −1, none
    ends: Tensor  # [buckets] ranks where the buckets end

    @classmethod
    def of(cls, tokens: Ragged, pairs: int) -> "SentenceBuckets":
        """Creates the buckets of a batch.

        Args:
            pairs: number of pairs of a token and a sentence per head.
        """
        area = np.arange(tokens.longest + 1) * (pairs / tokens.rows)  # pairs of a query and a key per sentence
        groups = cheapest_groups(tokens.lengths, area, BUCKET_COST)
        first = np.cumsum([0, *map(len, groups)])
        place = np.append(np.argsort(np.concatenate(groups)), tokens.rows)
        buckets = [SentenceBucket.of(tokens, rows) for rows in groups]
        return cls(buckets, first, tokens.index(place), tokens.index(first[1:]))


@dataclass(frozen=True)
class BucketBlocks:
    """Blocks of queries to the sentences of one bucket."""

    bucket: SentenceBucket  # the sentences
    heads: int  # H
    blocks: slice  # range of these b blocks among all
    query: Tensor  # [b · BLOCK] token · H + head of every slot
    group: Tensor  # [b] sentence in the bucket · H + head

    def results(self, slots: Tensor) -> Tensor:
        """Returns the part of these blocks, [b, BLOCK, ...], of a tensor over all slots."""
        return slots[self.blocks.start * BLOCK : self.blocks.stop * BLOCK].unflatten(0, (-1, BLOCK))

    def queries(self, rows: Tensor) -> Tensor:
        """Returns [b, BLOCK, ...] from [M·H, ...]."""
        return rows.index_select(0, self.query).unflatten(0, (-1, BLOCK))

    def keys(self, packed: Tensor) -> Tensor:
        """Returns [b, w, d] from packed tokens [N, H, d]."""
        return self.bucket.pad(packed).flatten(0, 1).index_select(0, self.group)

    def transposed_keys(self, packed: Tensor) -> Tensor:
        """Returns [b, d, w] from packed tokens [N, H, d]: small products are faster in this layout."""
        return self.bucket.pad(packed).flatten(0, 1).transpose(1, 2).contiguous().index_select(0, self.group)

    def hidden(self, dtype: torch.dtype) -> Optional[Tensor]:
        """Returns [b, 1, w], −∞ at padding and 0 at tokens; None without padding."""
        if self.bucket.hidden is None:
            return None
        sentence = self.group.div(self.heads, rounding_mode="floor")
        return self.bucket.hidden.to(dtype).index_select(0, sentence).unsqueeze(1)

    def sum_of_keys(self, blocks: Tensor, packed: Tensor) -> None:
        """Writes sums of [b, w, d] over the blocks of every sentence to packed tokens [N, H, d]."""
        groups = self.bucket.sentences * self.heads
        sums = blocks.new_zeros(groups, *blocks.shape[1:]).index_add_(0, self.group, blocks)
        self.bucket.unpad(sums.unflatten(0, (-1, self.heads)), packed)


@dataclass(frozen=True)
class PairBlocks:
    """Pairs (token, head, kept sentence) in blocks of ``BLOCK`` queries to one sentence and head, by length."""

    query: Tensor  # [blocks · BLOCK] token · H + head of every slot; 0 in filling slots
    slot: Tensor  # [M·H, t] slot of every pair; empty places share one slot after all blocks
    by_bucket: List[BucketBlocks]  # the blocks of each bucket that has any

    def new_slots(self, like: Tensor, *shape: int) -> Tensor:
        """Returns a new tensor over all slots, [blocks · BLOCK + 1, *shape]; the last slot, of no pair, is 0."""
        slots = like.new_empty(len(self.query) + 1, *shape)
        slots[-1] = 0
        return slots


def block_pairs(sentence: Tensor, buckets: SentenceBuckets) -> PairBlocks:
    """Returns the pairs of a selection in blocks.

    Args:
        sentence: [M, H, t] rows of the kept sentences, −1: none.
    """
    _, heads, t = sentence.shape
    device, groups = sentence.device, int(buckets.first[-1]) * heads
    group = buckets.place[sentence] * heads + torch.arange(heads, device=device)[:, None]
    small = torch.int16 if groups + heads < 2**15 else torch.int32  # faster to sort
    sorted_group, pair = torch.sort(group.flatten().to(small), stable=True)
    counts = torch.searchsorted(sorted_group, torch.arange(groups + 1, dtype=small, device=device)).diff()
    blocks = (counts + BLOCK - 1).div(BLOCK, rounding_mode="floor")
    last_block, last_pair = blocks.cumsum(0), counts.cumsum(0)
    sizes = torch.cat([last_block[buckets.ends * heads - 1], last_pair[-1:]])
    *ends, pairs = sizes.cpu().tolist()  # the only synchronisation with a GPU
    shift = (last_block - blocks) * BLOCK - (last_pair - counts)  # a group's first slot minus its first pair
    place = torch.full_like(pair, ends[-1] * BLOCK)
    place[:pairs] = torch.repeat_interleave(shift, counts, output_size=pairs).add_(torch.arange(pairs, device=device))
    slot = torch.empty_like(place).index_copy_(0, pair, place)
    query = torch.zeros(ends[-1] * BLOCK, dtype=torch.long, device=device)
    query.index_copy_(0, place[:pairs], pair[:pairs].div(t, rounding_mode="floor"))
    group_of_block = torch.repeat_interleave(torch.arange(groups, device=device), blocks, output_size=ends[-1])
    return PairBlocks(query, slot.view(-1, t), list(_by_bucket(query, group_of_block, ends, buckets, heads)))


def _by_bucket(
    query: Tensor, group: Tensor, ends: List[int], buckets: SentenceBuckets, heads: int
) -> Iterator[BucketBlocks]:
    """Yields the blocks of each bucket, given the block numbers where buckets end."""
    for bucket, first, start, end in zip(buckets.buckets, buckets.first.tolist(), [0, *ends], ends):
        if end > start:
            queries = query[start * BLOCK : end * BLOCK]
            yield BucketBlocks(bucket, heads, slice(start, end), queries, group[start:end] - first * heads)


class DropoutMasks:
    """Dropout masks of attention weights; the backward pass generates those of the forward pass again."""

    def __init__(self, dropout: float, seed: int, device: torch.device):
        self.keep = 1 - dropout
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, like: Tensor) -> Tensor:
        """Returns the next mask, 0 or 1/(1 − dropout)."""
        mask = torch.empty_like(like).bernoulli_(self.keep, generator=self.generator)
        return mask.div_(self.keep) if self.keep else mask


class AttendGrouped(torch.autograd.Function):
    """Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w of M tokens over the tokens of their kept sentences."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scores: Tensor,
        sentence: Tensor,
        buckets: SentenceBuckets,
        dropout: float,
    ) -> Tensor:
        """Returns [M, H, d_v].

        Args:
            q: [M, H, d_k] queries.
            k, v: [N, H, d_k], [N, H, d_v] packed tokens.
            scores: [M, H, t] R, −∞ at empty places.
            sentence: [M, H, t] rows of the kept sentences, −1: none.
        """
        ctx.dropout, ctx.seed = dropout, int(torch.randint(2**62, ())) if dropout else 0
        masks = DropoutMasks(dropout, ctx.seed, q.device) if dropout else None
        output = q.new_empty(*q.shape[:2], v.size(-1))
        log_sum = q.new_empty(q.shape[:2], dtype=computing_type(q.dtype))
        ctx.parts = []
        with without_autocast(q):
            for heads in _head_chunks(q, sentence):
                pairs = block_pairs(sentence[:, heads], buckets)
                ctx.parts.append((heads, pairs))
                results = attend_pairs(pairs, masks, *_select_heads(heads, q, k, v, scores))
                output[:, heads], log_sum[:, heads] = results
        ctx.save_for_backward(q, k, v, scores, output, log_sum)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        """Returns the gradients of q, k, v and scores."""
        saved = ctx.saved_tensors
        q = saved[0]
        masks = DropoutMasks(ctx.dropout, ctx.seed, q.device) if ctx.dropout else None
        gradients = [torch.empty_like(x) for x in saved[:4]]
        with without_autocast(q):
            for heads, pairs in ctx.parts:
                parts = attend_pairs_backward(pairs, masks, *_select_heads(heads, *saved, grad))
                for gradient, part in zip(gradients, parts):
                    gradient[:, heads] = part
        return *gradients, None, None, None


def _head_chunks(q: Tensor, sentence: Tensor) -> Iterator[slice]:
    """Yields slices of heads whose pairs' results may be held at a time."""
    elements_per_head = sentence.size(0) * sentence.size(2) * q.size(2)
    step = max(1, chunk_elements(q.device, CHUNK) // elements_per_head)
    for first in range(0, q.size(1), step):
        yield slice(first, first + step)


def _select_heads(heads: slice, *tensors: Tensor) -> List[Tensor]:
    """Returns some heads of tensors [., H, ...], contiguous and in the computing type."""
    return [tensor[:, heads].to(computing_type(tensor.dtype)).contiguous() for tensor in tensors]


def attend_pairs(
    pairs: PairBlocks, masks: Masks, q: Tensor, k: Tensor, v: Tensor, scores: Tensor
) -> Tuple[Tensor, Tensor]:
    """Returns the output [M, H, d_v] and the log-sum-exp L [M, H] for the pairs of some heads.

    Args:
        masks: dropout; None: no dropout.
        q: [M, H, d_k] queries.
        k, v: [N, H, d_k], [N, H, d_v] packed tokens.
        scores: [M, H, t] R, −∞ at empty places.
    """
    queries = (q * (1 / math.sqrt(q.size(-1)))).flatten(0, 1)
    output_of_pair, sum_of_pair = pairs.new_slots(v, v.size(-1)), pairs.new_slots(v)
    for blocks in pairs.by_bucket:
        logits = torch.bmm(blocks.queries(queries), blocks.transposed_keys(k))  # [b, BLOCK, w]
        hidden = blocks.hidden(logits.dtype)
        if hidden is not None:
            logits += hidden
        logs = torch.log_softmax(logits, dim=-1)
        torch.sub(logits[..., 0], logs[..., 0], out=blocks.results(sum_of_pair))  # column 0 is a token
        weights = logs.exp_()
        if masks is not None:
            weights *= masks(weights)
        torch.bmm(weights, blocks.keys(v), out=blocks.results(output_of_pair))
    logits = sum_of_pair.index_select(0, pairs.slot.flatten()).view_as(scores) + scores
    log_sum = logits.logsumexp(-1)
    share = (logits - log_sum.unsqueeze(-1)).exp_().flatten(0, 1)  # [M·H, t]
    output = F.embedding_bag(pairs.slot, output_of_pair, mode="sum", per_sample_weights=share)
    return output.view(*q.shape[:2], -1), log_sum


def attend_pairs_backward(
    pairs: PairBlocks,
    masks: Masks,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scores: Tensor,
    output: Tensor,
    log_sum: Tensor,
    grad: Tensor,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the gradients of q, k, v and scores from ``grad``, that of the output; see :func:`attend_pairs`."""
    scale = 1 / math.sqrt(q.size(-1))
    queries, grads, deltas = (x.flatten(0, 1) for x in (q * scale, grad, (grad * output).sum(-1)))
    bias = scores.new_full((len(pairs.query) + 1,), -torch.inf)  # R − L of every slot; filling slots have no weight
    bias[pairs.slot] = (scores - log_sum.unsqueeze(-1)).flatten(0, 1)
    q_of_pair, score_of_pair = pairs.new_slots(q, q.size(-1)), pairs.new_slots(q)
    grad_k, grad_v = torch.zeros_like(k), torch.zeros_like(v)
    for blocks in pairs.by_bucket:
        query, grad_output = blocks.queries(queries), blocks.queries(grads)  # [b, BLOCK, d]
        logits, hidden = blocks.results(bias).unsqueeze(-1), blocks.hidden(q.dtype)
        logits = logits if hidden is None else logits + hidden
        weights = torch.baddbmm(logits, query, blocks.transposed_keys(k)).exp_()  # [b, BLOCK, w]
        grad_logits = torch.bmm(grad_output, blocks.transposed_keys(v))
        dropped = weights
        if masks is not None:
            mask = masks(weights)
            dropped = weights * mask
            grad_logits *= mask
        grad_logits.sub_(blocks.queries(deltas).unsqueeze(-1)).mul_(weights)
        torch.sum(grad_logits, dim=-1, out=blocks.results(score_of_pair))
        torch.bmm(grad_logits, blocks.keys(k), out=blocks.results(q_of_pair))
        blocks.sum_of_keys(torch.bmm(grad_logits.transpose(1, 2), query), grad_k)
        blocks.sum_of_keys(torch.bmm(dropped.transpose(1, 2), grad_output), grad_v)
    grad_q = F.embedding_bag(pairs.slot, q_of_pair, mode="sum").view_as(q).mul_(scale)
    grad_scores = score_of_pair.index_select(0, pairs.slot.flatten()).view_as(scores)
    return grad_q, grad_k, grad_v, grad_scores

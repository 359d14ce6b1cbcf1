"""Attention to selected sentences at the cost of their tokens only, with a backward pass that recomputes ([T] eq. 7).

The queries of one sentence attend together in blocks, a few heads at a time: no N×N matrix is built, and results of
pairs of a token and a kept sentence are held for a few heads only. The backward pass is left nothing of their size but
which pair is in which block, for which a GPU is waited for once.
"""

from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels.pytorch import pair_attention
from docnmt_fairseq.context.conditional.kernels.pytorch.pair_blocks import SentenceBuckets, block_pairs
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast

CHUNK = 2**20  # numbers of the pairs' results held at a time on a CPU: heads are taken accordingly


@dataclass(frozen=True)
class GroupedPlan:
    """Large documents, of which only the selected sentences are computed.

    Attributes:
        items: [M] their tokens.
        buckets: the sentences of the batch by length.
    """

    items: Tensor
    buckets: SentenceBuckets

    @classmethod
    def of(cls, layout: DocumentLayout, documents: np.ndarray, places: int) -> "GroupedPlan":
        """The plan of some documents, ascending, whose tokens have so many places for sentences."""
        items = layout.index(layout.document_tokens.items_of(documents))
        return cls(items, SentenceBuckets.of(layout.tokens, len(items) * places))


def attend_grouped(
    q: Tensor, k: Tensor, v: Tensor, sentence: Tensor, scores: Tensor, plan: GroupedPlan, dropout: float
) -> Tensor:
    """Attention to selected sentences, [M, H, d_k], at the cost of their tokens.

    Args:
        q, k, v: [N, H, d_k] packed token states of the batch.
        sentence, scores: [M, H, t] of the tokens of the plan, see ``Selection``.
        plan: the documents.
        dropout: probability of dropping an attention weight.
    """
    if len(plan.items) < len(q):
        q = q.index_select(0, plan.items)
    return AttendGrouped.apply(q, k, v, scores, sentence, plan.buckets, dropout)


class DropoutMasks:
    """The masks of attention weights in the order of the forward pass, and the same ones again for the backward pass.

    Args:
        dropout: probability of dropping a weight.
        seed: of the masks.
        device: of the weights.
    """

    def __init__(self, dropout: float, seed: int, device: torch.device):
        self.keep = 1 - dropout
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, like: Tensor) -> Tensor:
        """The next mask, 0 or 1/(1 − dropout)."""
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
        """[M, H, d_v]; see ``pair_attention``.

        Args:
            ctx: keeps what the backward pass needs.
            q: [M, H, d_k] queries.
            k, v: [N, H, d_k], [N, H, d_v] packed tokens.
            scores: [M, H, t] R, −∞ at places that hold none.
            sentence: [M, H, t] rows of the kept sentences, −1: none.
            buckets: the sentences of the batch by length.
            dropout: probability of dropping a weight.
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
                results = pair_attention.forward(pairs, masks, *_of_heads(heads, q, k, v, scores))
                output[:, heads], log_sum[:, heads] = results
        ctx.save_for_backward(q, k, v, scores, output, log_sum)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        """The gradients of q, k, v and scores."""
        saved = ctx.saved_tensors
        q = saved[0]
        masks = DropoutMasks(ctx.dropout, ctx.seed, q.device) if ctx.dropout else None
        gradients = [torch.empty_like(x) for x in saved[:4]]
        with without_autocast(q):
            for heads, pairs in ctx.parts:
                parts = pair_attention.backward(pairs, masks, *_of_heads(heads, *saved, grad))
                for gradient, part in zip(gradients, parts):
                    gradient[:, heads] = part
        return *gradients, None, None, None


def _head_chunks(q: Tensor, sentence: Tensor) -> Iterator[slice]:
    """Slices of heads whose pairs' results may be held at a time."""
    of_head = sentence.size(0) * sentence.size(2) * q.size(2)
    step = max(1, chunk_elements(q.device, CHUNK) // of_head)
    for first in range(0, q.size(1), step):
        yield slice(first, first + step)


def _of_heads(heads: slice, *tensors: Tensor) -> List[Tensor]:
    """Some heads of tensors [., H, ...], contiguous and in the type to compute in."""
    return [tensor[:, heads].to(computing_type(tensor.dtype)).contiguous() for tensor in tensors]

"""Attention to selected sentences at the cost of their words only, with a backward pass that recomputes ([T] eq. 7).

The queries of one sentence attend together in blocks, a few heads at a time: no N×N matrix is built, results of pairs
of a word and a kept sentence are held for a few heads only, and nothing of their size is kept for the backward pass.
"""

from typing import Any, Iterator, List, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.kernels import pair_attention
from docnmt_fairseq.modules.kernels.pair_blocks import SentenceBuckets, block_pairs
from docnmt_fairseq.modules.kernels.precision import computing_type, without_autocast
from docnmt_fairseq.modules.sentence_selection import Selection
from docnmt_fairseq.ragged import Ragged

CHUNK = {"cpu": 2**20, "cuda": 2**26}  # numbers of the pairs' results held at a time: heads are taken accordingly


def attend_grouped(
    q: Tensor, k: Tensor, v: Tensor, selection: Selection, layout: DocumentLayout, dropout: float
) -> Tensor:
    """Returns attention to selected sentences, [M, H, d_k], at the cost of their words; see ``SelectionKernel``."""
    if len(selection.items) < len(q):
        q = q.index_select(0, selection.items)
    return GroupedAttention.apply(q, k, v, selection.scores, selection.sentence, layout.words, dropout)


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
        """Returns the next mask, 0 or 1/(1 − dropout)."""
        return torch.empty_like(like).bernoulli_(self.keep, generator=self.generator).div_(self.keep)


class GroupedAttention(torch.autograd.Function):
    """Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w of M words over the words of their kept sentences."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, scores: Tensor, sentence: Tensor, words: Ragged, dropout: float
    ) -> Tensor:
        """Returns [M, H, d_v]; see ``pair_attention``.

        Args:
            ctx: keeps what the backward pass needs.
            q: [M, H, d_k] queries.
            k, v: [N, H, d_k], [N, H, d_v] packed words.
            scores: [M, H, t] R, −∞ at places that hold none.
            sentence: [M, H, t] rows of the kept sentences, −1: none.
            words: words in sentences.
            dropout: probability of dropping a weight.
        """
        ctx.buckets = SentenceBuckets(words, sentence.size(0) * sentence.size(2))
        ctx.dropout, ctx.seed = dropout, int(torch.randint(2**62, ())) if dropout else 0
        masks = DropoutMasks(dropout, ctx.seed, q.device) if dropout else None
        output = q.new_empty(*q.shape[:2], v.size(-1))
        log_sum = q.new_empty(q.shape[:2], dtype=computing_type(q.dtype))
        with without_autocast(q):
            for heads in _head_chunks(q, sentence):
                pairs = block_pairs(sentence[:, heads], ctx.buckets)
                results = pair_attention.forward(*_of_heads(heads, q, k, v, scores), pairs, masks)
                output[:, heads], log_sum[:, heads] = results
        ctx.save_for_backward(q, k, v, scores, output, log_sum, sentence)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        """Returns the gradients of q, k, v and scores."""
        *saved, sentence = ctx.saved_tensors
        q = saved[0]
        masks = DropoutMasks(ctx.dropout, ctx.seed, q.device) if ctx.dropout else None
        gradients = [torch.empty_like(x) for x in saved[:4]]
        with without_autocast(q):
            for heads in _head_chunks(q, sentence):
                pairs = block_pairs(sentence[:, heads], ctx.buckets)
                parts = pair_attention.backward(*_of_heads(heads, *saved, grad), pairs, masks)
                for gradient, part in zip(gradients, parts):
                    gradient[:, heads] = part
        return *gradients, None, None, None


def _head_chunks(q: Tensor, sentence: Tensor) -> Iterator[slice]:
    """Yields slices of heads whose pairs' results may be held at a time."""
    of_head = sentence.size(0) * sentence.size(2) * q.size(2)
    step = max(1, CHUNK["cuda" if q.is_cuda else "cpu"] // of_head)
    for first in range(0, q.size(1), step):
        yield slice(first, first + step)


def _of_heads(heads: slice, *tensors: Tensor) -> List[Tensor]:
    """Returns some heads of tensors [., H, ...], contiguous and in the type to compute in."""
    return [tensor[:, heads].to(computing_type(tensor.dtype)).contiguous() for tensor in tensors]

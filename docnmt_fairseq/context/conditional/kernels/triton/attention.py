"""Attention to selected sentences, its programs put together: :class:`AttendToSelected` ([T] eq. 7).

The relevance R is constant inside one (token, sentence) pair, so with o_{i,s} and l_{i,s} the attention output and the
log-sum-exp of token i over the tokens of sentence s alone, out_i = Σ_s softmax_s(R_{i,s} + l_{i,s}) o_{i,s}. Queries of
one sentence and head are next to each other in ``Pairs``, and share its keys.
"""

import math
from typing import Any, Dict, Optional, Tuple

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.context.conditional.kernels.triton.attend import attend_kernel, combine_kernel
from docnmt_fairseq.context.conditional.kernels.triton.backward import (
    attend_backward_kernel,
    delta_kernel,
    queries_kernel,
)
from docnmt_fairseq.context.conditional.kernels.triton.numerics import on_device_of, prepared
from docnmt_fairseq.context.conditional.kernels.triton.pairs import Pairs
from docnmt_fairseq.context.conditional.kernels.triton.settings import ATTEND, BACKWARD, ROWWISE
from docnmt_fairseq.context.conditional.kernels.triton.split_sums import add_parts, new_parts
from docnmt_fairseq.context.conditional.kernels.triton.tiles import WorkPlan


def precision() -> str:
    """Of products of float32, by ``torch.set_float32_matmul_precision``: TF32, or three of its products for each."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


class AttendToSelected(torch.autograd.Function):
    """Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w of M tokens over the tokens of their kept sentences.

    Kept for the backward pass: inputs, output, the log-sum-exp [M, H] and the pairs' order; weights are recomputed.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scores: Tensor,
        items: Tensor,
        sentence: Tensor,
        work: WorkPlan,
        dropout: float,
    ) -> Tensor:
        """[M, H, d_k].

        Args:
            ctx: keeps what the backward pass needs.
            q, k, v: [N, H, d_k], of one type.
            scores: [M, H, t] float32 R, −∞ at places that hold none.
            items: [M] the tokens that select.
            sentence: [M, H, t] rows of the kept sentences, −1: none.
            work: sizes.
            dropout: probability of dropping a weight.
        """
        ctx.dim, ctx.work, ctx.dropout = q.size(-1), work, dropout
        ctx.seed = int(torch.randint(2**31 - 1, ())) if dropout > 0 else 0
        q, k, v = map(prepared, (q, k, v))
        scores, sentence = scores.contiguous(), sentence.contiguous()
        ctx.pairs = pairs = Pairs.of(sentence, len(work.offsets) - 1, work.item, work.split)
        count, width = sentence.numel(), q.size(-1)
        out_of_pair = q.new_empty(count, width)
        sum_of_pair = torch.empty(count, dtype=torch.float32, device=q.device)
        out, log_sum = q.new_empty(*sentence.shape[:2], width), scores.new_empty(sentence.shape[:2])
        rows = ROWWISE.options(width, q.dtype)
        with on_device_of(q):
            attend_kernel[(len(pairs.group),)](
                q, k, v, items, pairs.order, pairs.start, pairs.first, pairs.group, work.offsets, out_of_pair,
                sum_of_pair, *_sizes(ctx, sentence), **_meaning(ctx), **_common(ctx, width),
                **ATTEND.options(width, q.dtype),
            )  # fmt: skip
            combine_kernel[(triton.cdiv(log_sum.numel(), rows["ROWS"]),)](
                out_of_pair, sum_of_pair, sentence, scores, out, log_sum, log_sum.numel(), sentence.size(-1),
                DIM=width, **rows,
            )  # fmt: skip
        ctx.save_for_backward(q, k, v, scores, items, sentence, out, log_sum)
        return out[..., : ctx.dim] if ctx.dim < width else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], ...]:
        """The gradients of q, k, v and scores."""
        q, k, v, scores, items, sentence, out, log_sum = ctx.saved_tensors
        pairs, work, width = ctx.pairs, ctx.work, q.size(-1)
        grad, delta, of_scores = prepared(grad), torch.empty_like(log_sum), torch.zeros_like(scores)
        q_of_pair = torch.empty(sentence.numel(), width, dtype=torch.float32, device=q.device)
        of_q = (torch.empty_like if len(items) == len(q) else torch.zeros_like)(q)
        of_k, of_v = torch.zeros_like(k), torch.zeros_like(v)  # nobody may attend to a sentence
        k_parts, v_parts = (new_parts(k, pairs, work.longest) for _ in range(2))
        rows = ROWWISE.options(width, q.dtype)
        grid = (triton.cdiv(delta.numel(), rows["ROWS"]),)
        with on_device_of(q):
            delta_kernel[grid](out, grad, delta, delta.numel(), DIM=width, **rows)
            attend_backward_kernel[(len(pairs.group),)](
                q, k, v, scores, items, log_sum, grad, delta, pairs.order, pairs.start, pairs.first, pairs.group,
                pairs.slot, work.offsets, q_of_pair, of_scores, of_k, of_v, k_parts, v_parts, *_sizes(ctx, sentence),
                longest=work.longest, **_meaning(ctx), **_common(ctx, width), **BACKWARD.options(width, q.dtype),
            )  # fmt: skip
            add_parts(k_parts, of_k, work.offsets, pairs)
            add_parts(v_parts, of_v, work.offsets, pairs)
            queries_kernel[grid](
                q_of_pair, sentence, items, of_q, delta.numel(), *sentence.shape[1:], DIM=width, **rows
            )
        of_tokens = (x[..., : ctx.dim] for x in (of_q, of_k, of_v))
        return *of_tokens, of_scores, None, None, None, None


def _sizes(ctx: Any, sentence: Tensor) -> Tuple[int, int, int, int]:
    """H, t, R·H and the most pairs of an item."""
    return sentence.size(1), sentence.size(2), len(ctx.pairs.slot), ctx.pairs.item


def _meaning(ctx: Any) -> Dict[str, float]:
    """The numbers in the equations: the scale, and dropout's."""
    return {
        "scale": 1 / math.sqrt(ctx.dim),
        "seed": ctx.seed,
        "least": min(round(ctx.dropout * 2**31), 2**31 - 1),
        "factor": 1 / (1 - ctx.dropout) if ctx.dropout < 1 else 0.0,  # where all are dropped, none is scaled
    }


def _common(ctx: Any, width: int) -> Dict[str, Any]:
    """What forward and backward are compiled with."""
    return {"DIM": width, "DROPOUT": ctx.dropout > 0, "PRECISION": precision()}

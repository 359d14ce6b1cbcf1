"""Attention to selected sentences and its gradients ([T] eq. 7): :class:`AttendToSelected`.

The relevance R is constant within a (token, sentence) pair, so with o_{i,s} and l_{i,s} the attention output and the
log-sum-exp of token i over the tokens of sentence s alone, out_i = Σ_s softmax_s(R_{i,s} + l_{i,s}) o_{i,s}. Queries of
one sentence and head are adjacent in ``Pairs``, and share its keys.

The backward pass recomputes weights and dropout. With L the log-sum-exp of a token over all its tokens,
P = exp(q kᵀ/√d_k + R − L) are the weights of the whole softmax, δ = rowsum(dO ⊙ O), dS = P ⊙ (D ⊙ dO vᵀ − δ) with
dropout factors D, dR = rowsum(dS), dq = dS k/√d_k, dk = dSᵀ q/√d_k, dv = (P ⊙ D)ᵀ dO.
"""

import math
from typing import Any, Dict, Optional, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.context.conditional.kernels.triton.plans import WorkPlan
from docnmt_fairseq.context.conditional.kernels.triton.programs import (
    ATTEND,
    BACKWARD,
    LN_2,
    LOG2_E,
    ROWWISE,
    Pairs,
    add_parts,
    dropout_factors,
    item_of,
    new_parts,
    on_device_of,
    padded,
    pairs_of,
    part_of,
    product,
    write_sum,
)


class AttendToSelected(torch.autograd.Function):
    """Σ_w softmax_w(q_i k_wᵀ/√d_k + R_{i, sentence(w)}) v_w of M tokens over the tokens of their kept sentences.

    Saved for the backward pass: inputs, output, the log-sum-exp [M, H] and the order of the pairs.
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
        """Returns [M, H, d_k].

        Args:
            ctx: autograd context.
            q, k, v: [N, H, d_k], of one type.
            scores: [M, H, t] float32 R, −∞ at empty places.
            items: [M] tokens that select.
            sentence: [M, H, t] rows of the kept sentences, −1: none.
            work: sizes of the work.
            dropout: probability of dropping a weight.
        """
        ctx.dim, ctx.work, ctx.dropout = q.size(-1), work, dropout
        ctx.seed = int(torch.randint(2**31 - 1, ())) if dropout > 0 else 0
        q, k, v = map(padded, (q, k, v))
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
                sum_of_pair, *_sizes(ctx, sentence), **_parameters(ctx), **_common(ctx, width),
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
        """Returns the gradients of q, k, v and scores."""
        q, k, v, scores, items, sentence, out, log_sum = ctx.saved_tensors
        pairs, work, width = ctx.pairs, ctx.work, q.size(-1)
        grad, delta, grad_scores = padded(grad), torch.empty_like(log_sum), torch.zeros_like(scores)
        q_of_pair = torch.empty(sentence.numel(), width, dtype=torch.float32, device=q.device)
        grad_q = (torch.empty_like if len(items) == len(q) else torch.zeros_like)(q)
        grad_k, grad_v = torch.zeros_like(k), torch.zeros_like(v)  # a sentence may have no queries
        k_parts, v_parts = (new_parts(k, pairs, work.longest) for _ in range(2))
        rows = ROWWISE.options(width, q.dtype)
        grid = (triton.cdiv(delta.numel(), rows["ROWS"]),)
        with on_device_of(q):
            delta_kernel[grid](out, grad, delta, delta.numel(), DIM=width, **rows)
            attend_backward_kernel[(len(pairs.group),)](
                q, k, v, scores, items, log_sum, grad, delta, pairs.order, pairs.start, pairs.first, pairs.group,
                pairs.slot, work.offsets, q_of_pair, grad_scores, grad_k, grad_v, k_parts, v_parts,
                *_sizes(ctx, sentence), longest=work.longest, **_parameters(ctx), **_common(ctx, width),
                **BACKWARD.options(width, q.dtype),
            )  # fmt: skip
            add_parts(k_parts, grad_k, work.offsets, pairs)
            add_parts(v_parts, grad_v, work.offsets, pairs)
            queries_kernel[grid](
                q_of_pair, sentence, items, grad_q, delta.numel(), *sentence.shape[1:], DIM=width, **rows
            )
        token_gradients = (x[..., : ctx.dim] for x in (grad_q, grad_k, grad_v))
        return *token_gradients, grad_scores, None, None, None, None


def _sizes(ctx: Any, sentence: Tensor) -> Tuple[int, int, int, int]:
    """Returns H, t, R·H and the maximum number of pairs of an item."""
    return sentence.size(1), sentence.size(2), len(ctx.pairs.slot), ctx.pairs.item


def _parameters(ctx: Any) -> Dict[str, float]:
    """Returns the parameters of the equations: scale and dropout."""
    return {
        "scale": 1 / math.sqrt(ctx.dim),
        "seed": ctx.seed,
        "threshold": min(round(ctx.dropout * 2**31), 2**31 - 1),
        "factor": 1 / (1 - ctx.dropout) if ctx.dropout < 1 else 0.0,  # nothing to scale if all are dropped
    }


def _common(ctx: Any, width: int) -> Dict[str, Any]:
    """Returns the compiler options of forward and backward pass."""
    return {"DIM": width, "DROPOUT": ctx.dropout > 0, "PRECISION": precision()}


def precision() -> str:
    """Returns the precision of float32 products: TF32, or three TF32 products at PyTorch's ``highest`` precision."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


@triton.jit(do_not_specialize=["places", "groups", "item", "seed", "threshold"])
def attend_kernel(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    items: tl.tensor,
    order: tl.tensor,
    start: tl.tensor,
    first: tl.tensor,
    group: tl.tensor,
    offsets: tl.tensor,
    out_of_pair: tl.tensor,
    sum_of_pair: tl.tensor,
    heads: tl.int32,
    places: tl.int32,
    groups: tl.int32,
    item: tl.int32,
    scale: tl.float32,
    seed: tl.int32,
    threshold: tl.int32,
    factor: tl.float32,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """o = Σ_w softmax_w(q k_w/√d_k) v_w and l = log Σ_w exp(q k_w/√d_k) of an item's pairs, w the sentence's tokens.

    The keys of a sentence and head are read from the cache for every block of queries.

    Args:
        out_of_pair: [P, DIM] o.
        sum_of_pair: [P] float32, l.
    """
    number = tl.program_id(0)
    this = tl.load(group + number)
    if this < groups:
        sentence, head = this // heads, this % heads
        _, begin, end = item_of(number, this, start, first, item)
        token, last = tl.load(offsets + sentence), tl.load(offsets + sentence + 1)
        d, column = tl.arange(0, DIM), tl.arange(0, KEYS)
        for block in range(begin, end, QUERIES):
            i = block + tl.arange(0, QUERIES)
            is_pair, pair, row = pairs_of(i, end, order, items, head, heads, places)
            queries = tl.load(q + row[:, None] * DIM + d[None, :], mask=is_pair[:, None], other=0.0)
            highest = tl.full([QUERIES], float("-inf"), tl.float32)
            total = tl.zeros([QUERIES], tl.float32)
            out = tl.zeros([QUERIES, DIM], tl.float32)
            for w in range(token, last, KEYS):
                is_token = w + column < last
                from_row = (w + column).to(tl.int64) * heads + head
                keys = tl.load(k + from_row[None, :] * DIM + d[:, None], mask=is_token[None, :], other=0.0)
                logits = product(queries, keys, PRECISION) * (scale * LOG2_E)
                logits = tl.where(is_token[None, :], logits, float("-inf"))
                higher = tl.maximum(highest, tl.max(logits, 1))
                weights = tl.exp2(logits - higher[:, None])
                shrinks = tl.exp2(highest - higher)
                total = total * shrinks + tl.sum(weights, 1)
                if DROPOUT:
                    weights *= dropout_factors(seed, pair, w - token, threshold, factor, KEYS)
                values = tl.load(v + from_row[:, None] * DIM + d[None, :], mask=is_token[:, None], other=0.0)
                out = out * shrinks[:, None] + product(weights.to(values.dtype), values, PRECISION)
                highest = higher
            to = pair.to(tl.int64)[:, None] * DIM + d[None, :]
            out = out / total[:, None]
            tl.store(out_of_pair + to, out.to(out_of_pair.dtype.element_ty), mask=is_pair[:, None])
            tl.store(sum_of_pair + pair, (highest + tl.log2(total)) * LN_2, mask=is_pair)


@triton.jit(do_not_specialize=["rows", "places"])
def combine_kernel(
    out_of_pair: tl.tensor,
    sum_of_pair: tl.tensor,
    sentence: tl.tensor,
    scores: tl.tensor,
    out: tl.tensor,
    log_sum: tl.tensor,
    rows: tl.int32,
    places: tl.int32,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """out = Σ_j softmax_j(R_j + l_j) o_j over the t sentences of a token, and L = log Σ_j exp(R_j + l_j).

    Args:
        out_of_pair, sum_of_pair: o [P, DIM] and l [P].
        out: [M, H, DIM].
        rows: M·H.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, DIM)
    is_row = row < rows
    highest = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, DIM], tl.float32)
    for place in range(places):
        pair = row.to(tl.int64) * places + place
        is_pair = tl.load(sentence + pair, mask=is_row, other=-1) >= 0
        logit = tl.load(scores + pair, mask=is_pair, other=float("-inf"))
        logit += tl.load(sum_of_pair + pair, mask=is_pair, other=0.0)
        higher = tl.maximum(highest, logit)
        # Before the first sentence both are −∞, and their difference is NaN.
        shrinks = tl.where(highest == float("-inf"), 0.0, tl.exp(highest - higher))
        weight = tl.where(is_pair, tl.exp(logit - higher), 0.0)
        part = tl.load(out_of_pair + pair[:, None] * DIM + d[None, :], mask=is_pair[:, None], other=0.0)
        result = result * shrinks[:, None] + part.to(tl.float32) * weight[:, None]
        total = total * shrinks + weight
        highest = higher
    to = row.to(tl.int64)[:, None] * DIM + d[None, :]
    result = result / total[:, None]
    tl.store(out + to, result.to(out.dtype.element_ty), mask=is_row[:, None])
    tl.store(log_sum + row, highest + tl.log(total), mask=is_row)


@triton.jit(do_not_specialize=["places", "groups", "item", "longest", "seed", "threshold"])
def attend_backward_kernel(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    scores: tl.tensor,
    items: tl.tensor,
    log_sum: tl.tensor,
    grad_out: tl.tensor,
    delta: tl.tensor,
    order: tl.tensor,
    start: tl.tensor,
    first: tl.tensor,
    group: tl.tensor,
    slot: tl.tensor,
    offsets: tl.tensor,
    q_of_pair: tl.tensor,
    grad_scores: tl.tensor,
    grad_k: tl.tensor,
    grad_v: tl.tensor,
    k_parts: tl.tensor,
    v_parts: tl.tensor,
    heads: tl.int32,
    places: tl.int32,
    groups: tl.int32,
    item: tl.int32,
    longest: tl.int32,
    scale: tl.float32,
    seed: tl.int32,
    threshold: tl.int32,
    factor: tl.float32,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """dk and dv of the keys of an item; dq and dR of its pairs, each to the pair's own place.

    A block of keys stays in registers, where dk and dv are accumulated over all queries. If a sentence has several
    blocks of keys, dq and dR are read and written once per block.

    Args:
        grad_out: [M, H, DIM] dO.
        q_of_pair: [P, DIM] float32, dq.
        grad_scores: [P] float32, dR.
        grad_k, grad_v: [N, H, DIM] dk, dv.
        longest: tokens of the longest sentence.
    """
    number = tl.program_id(0)
    this = tl.load(group + number)
    if this < groups:
        sentence, head = this // heads, this % heads
        nth, begin, end = item_of(number, this, start, first, item)
        part = part_of(slot, this, nth)
        token, last = tl.load(offsets + sentence), tl.load(offsets + sentence + 1)
        d = tl.arange(0, DIM)
        for w in range(token, last, KEYS):
            column = w + tl.arange(0, KEYS)
            is_token = column < last
            at_keys = (column.to(tl.int64) * heads + head)[:, None] * DIM + d[None, :]
            keys = tl.load(k + at_keys, mask=is_token[:, None], other=0.0)
            values = tl.load(v + at_keys, mask=is_token[:, None], other=0.0)
            k_sum = tl.zeros([KEYS, DIM], tl.float32)
            v_sum = tl.zeros([KEYS, DIM], tl.float32)
            for block in range(begin, end, QUERIES):
                i = block + tl.arange(0, QUERIES)
                is_pair, pair, from_row = pairs_of(i, end, order, items, head, heads, places)
                row = pair // places
                queries = tl.load(q + from_row[:, None] * DIM + d[None, :], mask=is_pair[:, None], other=0.0)
                at_rows = row.to(tl.int64)[:, None] * DIM + d[None, :]
                outs = tl.load(grad_out + at_rows, mask=is_pair[:, None], other=0.0)
                bias = tl.load(scores + pair, mask=is_pair, other=float("-inf"))
                bias = (bias - tl.load(log_sum + row, mask=is_pair, other=0.0)) * LOG2_E
                logits = product(queries, tl.trans(keys), PRECISION) * (scale * LOG2_E) + bias[:, None]
                weights = tl.where(is_token[None, :], tl.exp2(logits), 0.0)
                grad_logits = product(outs, tl.trans(values), PRECISION)
                dropped = weights
                if DROPOUT:
                    factors = dropout_factors(seed, pair, w - token, threshold, factor, KEYS)
                    dropped = weights * factors
                    grad_logits *= factors
                grad_logits = weights * (grad_logits - tl.load(delta + row, mask=is_pair, other=0.0)[:, None])
                v_sum += product(tl.trans(dropped.to(outs.dtype)), outs, PRECISION)
                grad_score = tl.sum(grad_logits, 1)
                grad_logits = grad_logits.to(queries.dtype)
                k_sum += product(tl.trans(grad_logits), queries, PRECISION)
                grad_query = product(grad_logits, keys, PRECISION) * scale
                at_pairs = pair.to(tl.int64)[:, None] * DIM + d[None, :]
                if w > token:
                    grad_query += tl.load(q_of_pair + at_pairs, mask=is_pair[:, None], other=0.0)
                    grad_score += tl.load(grad_scores + pair, mask=is_pair, other=0.0)
                tl.store(q_of_pair + at_pairs, grad_query, mask=is_pair[:, None])
                tl.store(grad_scores + pair, grad_score, mask=is_pair)
            rows = column.to(tl.int64) * heads + head
            write_sum(k_sum * scale, grad_k, k_parts, part, rows, column - token, is_token, longest, DIM)
            write_sum(v_sum, grad_v, v_parts, part, rows, column - token, is_token, longest, DIM)
            tl.debug_barrier()  # other threads read these values of q_of_pair


@triton.jit(do_not_specialize=["rows"])
def delta_kernel(
    out: tl.tensor, grad_out: tl.tensor, delta: tl.tensor, rows: tl.int32, DIM: tl.constexpr, ROWS: tl.constexpr
) -> None:
    """δ = rowsum(dO ⊙ O) of rows [M·H, DIM] in float32."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row.to(tl.int64)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    is_row = row < rows
    outs = tl.load(out + at, mask=is_row[:, None], other=0.0).to(tl.float32)
    total = tl.sum(outs * tl.load(grad_out + at, mask=is_row[:, None], other=0.0).to(tl.float32), 1)
    tl.store(delta + row, total, mask=is_row)


@triton.jit(do_not_specialize=["rows", "places"])
def queries_kernel(
    q_of_pair: tl.tensor,
    sentence: tl.tensor,
    items: tl.tensor,
    grad_q: tl.tensor,
    rows: tl.int32,
    heads: tl.int32,
    places: tl.int32,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """dq of every token, the sum over its sentences; see ``attend_backward_kernel``."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d, is_row = tl.arange(0, DIM), row < rows
    total = tl.zeros([ROWS, DIM], tl.float32)
    for place in range(places):
        pair = row.to(tl.int64) * places + place
        is_pair = tl.load(sentence + pair, mask=is_row, other=-1) >= 0
        total += tl.load(q_of_pair + pair[:, None] * DIM + d[None, :], mask=is_pair[:, None], other=0.0)
    token = tl.load(items + row // heads, mask=is_row, other=0) * heads + row % heads
    tl.store(grad_q + token[:, None] * DIM + d[None, :], total.to(grad_q.dtype.element_ty), mask=is_row[:, None])

"""Relevance of selected sentences, R = q·k/√d_k ([T] eq. 3), and its gradients."""

import math
from typing import Any, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.context.conditional.kernels.triton.plans import MIN_ITEM
from docnmt_fairseq.context.conditional.kernels.triton.programs import (
    SCORE,
    SCORE_KEYS,
    Pairs,
    add_parts,
    in_common_type,
    item_of,
    new_parts,
    on_device_of,
    padded,
    pairs_of,
    part_of,
    write_sum,
)


@triton.jit(do_not_specialize=["rows", "places"])
def score_kernel(
    q: tl.tensor,
    k: tl.tensor,
    items: tl.tensor,
    sentence: tl.tensor,
    scores: tl.tensor,
    rows: tl.int32,
    heads: tl.int32,
    places: tl.int32,
    scale: tl.float32,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """R of the selected sentences, −∞ at empty places.

    Args:
        rows: M·H.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    head, d, is_row = row % heads, tl.arange(0, DIM), row < rows
    token = tl.load(items + row // heads, mask=is_row, other=0) * heads + head
    queries = tl.load(q + token[:, None] * DIM + d[None, :], mask=is_row[:, None], other=0.0).to(tl.float32)
    for place in range(places):
        pair = row.to(tl.int64) * places + place
        chosen = tl.load(sentence + pair, mask=is_row, other=-1)
        key = chosen * heads + head
        keys = tl.load(k + key[:, None] * DIM + d[None, :], mask=(chosen >= 0)[:, None], other=0.0).to(tl.float32)
        score = tl.sum(queries * keys, 1) * scale
        tl.store(scores + pair, tl.where(chosen >= 0, score, float("-inf")), mask=is_row)


@triton.jit(do_not_specialize=["rows", "places"])
def score_queries_kernel(
    k: tl.tensor,
    items: tl.tensor,
    sentence: tl.tensor,
    grad_scores: tl.tensor,
    grad_q: tl.tensor,
    rows: tl.int32,
    heads: tl.int32,
    places: tl.int32,
    scale: tl.float32,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
) -> None:
    """dq = Σ_j dR_j k_j/√d_k over the selected sentences of a token; see ``score_kernel``."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    head, d, is_row = row % heads, tl.arange(0, DIM), row < rows
    total = tl.zeros([ROWS, DIM], tl.float32)
    for place in range(places):
        pair = row.to(tl.int64) * places + place
        chosen = tl.load(sentence + pair, mask=is_row, other=-1)
        grad_score = tl.load(grad_scores + pair, mask=chosen >= 0, other=0.0)
        key = chosen * heads + head
        keys = tl.load(k + key[:, None] * DIM + d[None, :], mask=(chosen >= 0)[:, None], other=0.0).to(tl.float32)
        total += grad_score[:, None] * keys
    token = tl.load(items + row // heads, mask=is_row, other=0) * heads + head
    total = (total * scale).to(grad_q.dtype.element_ty)
    tl.store(grad_q + token[:, None] * DIM + d[None, :], total, mask=is_row[:, None])


@triton.jit(do_not_specialize=["places", "groups", "item"])
def score_keys_kernel(
    q: tl.tensor,
    items: tl.tensor,
    grad_scores: tl.tensor,
    order: tl.tensor,
    start: tl.tensor,
    first: tl.tensor,
    group: tl.tensor,
    slot: tl.tensor,
    grad_k: tl.tensor,
    parts: tl.tensor,
    heads: tl.int32,
    places: tl.int32,
    groups: tl.int32,
    item: tl.int32,
    scale: tl.float32,
    DIM: tl.constexpr,
    PAIRS: tl.constexpr,
) -> None:
    """dk = Σ dR q/√d_k over an item's pairs; see ``score_kernel``, ``Pairs``, ``write_sum``."""
    number = tl.program_id(0)
    this = tl.load(group + number)
    if this < groups:
        nth, begin, end = item_of(number, this, start, first, item)
        d = tl.arange(0, DIM)
        total = tl.zeros([DIM], tl.float32)
        for block in range(begin, end, PAIRS):
            i = block + tl.arange(0, PAIRS)
            is_pair, pair, row = pairs_of(i, end, order, items, this % heads, heads, places)
            queries = tl.load(q + row[:, None] * DIM + d[None, :], mask=is_pair[:, None], other=0.0).to(tl.float32)
            total += tl.sum(tl.load(grad_scores + pair, mask=is_pair, other=0.0)[:, None] * queries, 0)
        zero = tl.arange(0, 1)
        row = this + zero.to(tl.int64)
        write_sum((total * scale)[None, :], grad_k, parts, part_of(slot, this, nth), row, zero, zero == 0, 1, DIM)


class SelectedScores(torch.autograd.Function):
    """R of M tokens for their selected sentences, −∞ at empty places."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R, [M, H, t] float32; see ``SelectionKernel.score``."""
        ctx.dim, ctx.types = q.size(-1), (q.dtype, k.dtype)
        q, k = map(padded, in_common_type(q, k))
        sentence = sentence.contiguous()
        ctx.save_for_backward(q, k, items, sentence)
        scores = torch.empty(sentence.shape, dtype=torch.float32, device=q.device)
        SelectedScores._by_rows(score_kernel, ctx.dim, (q, k), items, sentence, scores)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor, None, None]:
        """Returns the gradients of q and k."""
        q, k, items, sentence = ctx.saved_tensors
        grad, heads, width = grad.contiguous(), q.size(1), q.size(-1)
        grad_q = (torch.empty_like if len(items) == len(q) else torch.zeros_like)(q)
        SelectedScores._by_rows(score_queries_kernel, ctx.dim, (k,), items, sentence, grad, grad_q)
        item = MIN_ITEM
        pairs, grad_k = Pairs.of(sentence, len(k), item, split=len(items) > item), torch.zeros_like(k)
        parts = new_parts(k, pairs, 1)
        with on_device_of(q):
            score_keys_kernel[(len(pairs.group),)](
                q, items, grad, pairs.order, pairs.start, pairs.first, pairs.group, pairs.slot, grad_k, parts,
                heads, sentence.size(-1), len(pairs.slot), pairs.item, 1 / math.sqrt(ctx.dim), DIM=width,
                **SCORE_KEYS.options(width, q.dtype),
            )  # fmt: skip
            add_parts(parts, grad_k, torch.arange(len(k) + 1, dtype=torch.int32, device=k.device), pairs)
        grad_q, grad_k = (x[..., : ctx.dim].to(dtype) for x, dtype in zip((grad_q, grad_k), ctx.types))
        return grad_q, grad_k, None, None

    @staticmethod
    def _by_rows(
        program: Any, dim: int, inputs: Tuple[Tensor, ...], items: Tensor, sentence: Tensor, *to: Tensor
    ) -> None:
        """Launches a program over blocks of rows (token, head)."""
        rows, heads = sentence.size(0) * sentence.size(1), sentence.size(1)
        options = SCORE.options(inputs[0].size(-1), inputs[0].dtype)
        with on_device_of(sentence):
            program[(triton.cdiv(rows, options["ROWS"]),)](
                *inputs, items, sentence, *to, rows, heads, sentence.size(-1), 1 / math.sqrt(dim),
                DIM=inputs[0].size(-1), **options,
            )  # fmt: skip

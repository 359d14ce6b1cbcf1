"""Gradients of the attention of the pairs; weights are computed again, dropout included.

With L the log-sum-exp of a token over all its tokens, P = exp(q kᵀ/√d_k + R − L) are the weights of the whole softmax,
δ = rowsum(dO ⊙ O), dS = P ⊙ (D ⊙ dO vᵀ − δ) with dropout's factors D, dR = rowsum(dS), dq = dS k/√d_k,
dk = dSᵀ q/√d_k, dv = (P ⊙ D)ᵀ dO.
"""

import triton
import triton.language as tl

from docnmt_fairseq.context.conditional.kernels.triton.items import item_of, pairs_of
from docnmt_fairseq.context.conditional.kernels.triton.numerics import LOG2_E, dropout_factors, product
from docnmt_fairseq.context.conditional.kernels.triton.split_sums import part_of, write_sum


@triton.jit(do_not_specialize=["places", "groups", "item", "longest", "seed", "least"])
def attend_backward_kernel(
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    scores: tl.tensor,
    items: tl.tensor,
    log_sum: tl.tensor,
    of_out: tl.tensor,
    delta: tl.tensor,
    order: tl.tensor,
    start: tl.tensor,
    first: tl.tensor,
    group: tl.tensor,
    slot: tl.tensor,
    offsets: tl.tensor,
    q_of_pair: tl.tensor,
    of_scores: tl.tensor,
    of_k: tl.tensor,
    of_v: tl.tensor,
    k_parts: tl.tensor,
    v_parts: tl.tensor,
    heads: tl.int32,
    places: tl.int32,
    groups: tl.int32,
    item: tl.int32,
    longest: tl.int32,
    scale: tl.float32,
    seed: tl.int32,
    least: tl.int32,
    factor: tl.float32,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """dk and dv of the keys of an item; dq and dR of its pairs, each to the pair's own place.

    Keys stay, queries pass by: dk and dv are added up in registers. Where a sentence has several blocks of keys, dq and
    dR are read and written again for each.

    Args:
        q, k, v: [N, H, DIM].
        scores: [M, H, t] R.
        items: [M] the tokens that select.
        log_sum: [M, H] L.
        of_out: [M, H, DIM] dO.
        delta: [M, H] δ.
        order, start, first, group, slot: see ``Pairs``.
        offsets: [R + 1] the first token of every sentence.
        q_of_pair: [P, DIM] float32, dq.
        of_scores: [P] float32, dR.
        of_k, of_v: [N, H, DIM] dk, dv.
        k_parts, v_parts: see ``write_sum``.
        heads: H.
        places: t.
        groups: R·H.
        item: the most pairs of an item.
        longest: tokens of the longest sentence.
        scale: 1/√d_k.
        seed, least, factor: see ``dropout_factors``.
        DIM: d_k.
        QUERIES, KEYS: of a block.
        DROPOUT: whether weights are dropped.
        PRECISION: of products of float32.
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
                outs = tl.load(of_out + at_rows, mask=is_pair[:, None], other=0.0)
                bias = tl.load(scores + pair, mask=is_pair, other=float("-inf"))
                bias = (bias - tl.load(log_sum + row, mask=is_pair, other=0.0)) * LOG2_E
                logits = product(queries, tl.trans(keys), PRECISION) * (scale * LOG2_E) + bias[:, None]
                weights = tl.where(is_token[None, :], tl.exp2(logits), 0.0)
                of_logits = product(outs, tl.trans(values), PRECISION)
                dropped = weights
                if DROPOUT:
                    factors = dropout_factors(seed, pair, w - token, least, factor, KEYS)
                    dropped = weights * factors
                    of_logits *= factors
                of_logits = weights * (of_logits - tl.load(delta + row, mask=is_pair, other=0.0)[:, None])
                v_sum += product(tl.trans(dropped.to(outs.dtype)), outs, PRECISION)
                of_score = tl.sum(of_logits, 1)
                of_logits = of_logits.to(queries.dtype)
                k_sum += product(tl.trans(of_logits), queries, PRECISION)
                of_query = product(of_logits, keys, PRECISION) * scale
                at_pairs = pair.to(tl.int64)[:, None] * DIM + d[None, :]
                if w > token:
                    of_query += tl.load(q_of_pair + at_pairs, mask=is_pair[:, None], other=0.0)
                    of_score += tl.load(of_scores + pair, mask=is_pair, other=0.0)
                tl.store(q_of_pair + at_pairs, of_query, mask=is_pair[:, None])
                tl.store(of_scores + pair, of_score, mask=is_pair)
            rows = column.to(tl.int64) * heads + head
            write_sum(k_sum * scale, of_k, k_parts, part, rows, column - token, is_token, longest, DIM)
            write_sum(v_sum, of_v, v_parts, part, rows, column - token, is_token, longest, DIM)
            tl.debug_barrier()  # other threads read what these wrote to q_of_pair


@triton.jit(do_not_specialize=["rows"])
def delta_kernel(
    out: tl.tensor, of_out: tl.tensor, delta: tl.tensor, rows: tl.int32, DIM: tl.constexpr, ROWS: tl.constexpr
) -> None:
    """δ = rowsum(dO ⊙ O) of rows [M·H, DIM] in float32."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row.to(tl.int64)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    is_row = row < rows
    outs = tl.load(out + at, mask=is_row[:, None], other=0.0).to(tl.float32)
    total = tl.sum(outs * tl.load(of_out + at, mask=is_row[:, None], other=0.0).to(tl.float32), 1)
    tl.store(delta + row, total, mask=is_row)


@triton.jit(do_not_specialize=["rows", "places"])
def queries_kernel(
    q_of_pair: tl.tensor,
    sentence: tl.tensor,
    items: tl.tensor,
    of_q: tl.tensor,
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
    tl.store(of_q + token[:, None] * DIM + d[None, :], total.to(of_q.dtype.element_ty), mask=is_row[:, None])

"""Attention of the pairs: every token to the tokens of one kept sentence alone ([T] eq. 7)."""

import triton
import triton.language as tl

from docnmt_fairseq.context.conditional.kernels.triton.items import item_of, pairs_of
from docnmt_fairseq.context.conditional.kernels.triton.numerics import LN_2, LOG2_E, dropout_factors, product


@triton.jit(do_not_specialize=["places", "groups", "item", "seed", "least"])
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
    least: tl.int32,
    factor: tl.float32,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """o = Σ_w softmax_w(q k_w/√d_k) v_w and l = log Σ_w exp(q k_w/√d_k) of an item's pairs, w the sentence's tokens.

    The keys of one sentence and head are read again for every block of queries, from the cache.

    Args:
        q, k, v: [N, H, DIM].
        items: [M] the tokens that select.
        order, start, first, group: see ``Pairs``.
        offsets: [R + 1] the first token of every sentence.
        out_of_pair: [P, DIM] o.
        sum_of_pair: [P] float32, l.
        heads: H.
        places: t.
        groups: R·H.
        item: the most pairs of an item.
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
                    weights *= dropout_factors(seed, pair, w - token, least, factor, KEYS)
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
        sentence: [M, H, t] rows of the kept sentences, −1: none.
        scores: [M, H, t] R.
        out: [M, H, DIM].
        log_sum: [M, H] float32, L.
        rows: M·H.
        places: t.
        DIM: d_k.
        ROWS: of a block.
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
        # Until a sentence has come the two are −∞, and their difference is no number.
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

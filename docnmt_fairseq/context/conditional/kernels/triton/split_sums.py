"""Gradients of keys whose queries several programs share: each program writes its part, then the parts are added up.

So no two programs add to the same number: results are the same in every run, bit by bit.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from docnmt_fairseq.context.conditional.kernels.triton.pairs import Pairs
from docnmt_fairseq.context.conditional.kernels.triton.settings import ADD_PARTS


@triton.jit
def part_of(slot: tl.tensor, this: tl.int32, nth: tl.int32) -> tl.tensor:
    """Where the nth item of a group writes its part; −1: it is the only one, and writes the sum itself."""
    begin = tl.load(slot + this)
    return tl.where(begin < 0, -1, begin + nth)


@triton.jit
def write_sum(
    x: tl.tensor,
    sums: tl.tensor,
    parts: tl.tensor,
    part: tl.int32,
    row: tl.tensor,
    place: tl.tensor,
    is_key: tl.tensor,
    longest: tl.int32,
    DIM: tl.constexpr,
) -> None:
    """Writes an item's x [b, DIM] to rows of ``sums``, or to its own part where others share them.

    Args:
        x: float32.
        sums: [·, DIM].
        parts: [slots, longest, DIM] float32.
        part: see ``part_of``.
        row: [b] int64, in ``sums``.
        place: [b] of the keys in their sentence.
        is_key: [b].
        longest: keys of a sentence at most.
        DIM: d_k.
    """
    d = tl.arange(0, DIM)
    if part < 0:
        tl.store(sums + row[:, None] * DIM + d[None, :], x.to(sums.dtype.element_ty), mask=is_key[:, None])
    else:
        row = part.to(tl.int64) * longest + place
        tl.store(parts + row[:, None] * DIM + d[None, :], x, mask=is_key[:, None])


@triton.jit(do_not_specialize=["longest"])
def add_parts_kernel(
    parts: tl.tensor,
    sums: tl.tensor,
    offsets: tl.tensor,
    first: tl.tensor,
    slot: tl.tensor,
    heads: tl.int32,
    longest: tl.int32,
    DIM: tl.constexpr,
    KEYS: tl.constexpr,
) -> None:
    """Adds up the parts of a group, in their order.

    Args:
        parts: [slots, longest, DIM] float32.
        sums: [N, H, DIM].
        offsets: [R + 1] the first key of every sentence.
        first, slot: see ``Pairs``.
        heads: H.
        longest: keys of a sentence at most.
        DIM: d_k.
        KEYS: of a block.
    """
    this = tl.program_id(0)
    begin = tl.load(slot + this)
    if begin >= 0:
        items = tl.load(first + this + 1) - tl.load(first + this)
        key, last = tl.load(offsets + this // heads), tl.load(offsets + this // heads + 1)
        d = tl.arange(0, DIM)
        for w in range(key, last, KEYS):
            column = w + tl.arange(0, KEYS)
            is_key = (column < last)[:, None]
            total = tl.zeros([KEYS, DIM], tl.float32)
            for part in range(begin, begin + items):
                row = (part * longest + column - key).to(tl.int64)
                total += tl.load(parts + row[:, None] * DIM + d[None, :], mask=is_key, other=0.0)
            row = column.to(tl.int64) * heads + this % heads
            tl.store(sums + row[:, None] * DIM + d[None, :], total.to(sums.dtype.element_ty), mask=is_key)


def new_parts(like: Tensor, pairs: Pairs, longest: int) -> Tensor:
    """Room for the parts, [slots, longest, DIM]; of no use, but there, where no group is shared."""
    return torch.empty(max(1, pairs.slots), longest, like.size(-1), dtype=torch.float32, device=like.device)


def add_parts(parts: Tensor, sums: Tensor, offsets: Tensor, pairs: Pairs) -> None:
    """Writes the sums of all parts to their keys in ``sums`` [N, H, DIM]."""
    if pairs.slots:
        add_parts_kernel[(len(pairs.slot),)](
            parts, sums, offsets, pairs.first, pairs.slot, sums.size(1), parts.size(1), DIM=sums.size(-1),
            **ADD_PARTS.options(sums.size(-1), sums.dtype),
        )  # fmt: skip

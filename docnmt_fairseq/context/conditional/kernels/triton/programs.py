"""Shared parts of the Triton programs: block sizes, products, dropout, launching, and pairs as units of work.

Block sizes depend on head width and type, such that registers hold all intermediate results. The tests compile each
program ahead of time and check its registers and shared memory.

Pairs of a token and a kept sentence are grouped by sentence and head into work items. Gradients of keys whose queries
are spread over several programs: each program writes its part, then the parts are added up. No two programs add to the
same number, so results are bit-identical in every run.

Arguments of all programs:
    q, k, v: [N, H, DIM] states of tokens; when sentences are selected or scored, k is [R, H, DIM], keys of sentences.
    items: [M] tokens that select; sentence: [M, H, t] rows of their kept sentences, −1: none; scores: [M, H, t] R.
    log_sum, delta: [M, H] float32, L and δ.
    order, start, first, group, slot, item: see ``Pairs``; parts: see ``write_sum``; tiles: see ``Tiles``.
    offsets: [R + 1] first token of every sentence.
    heads, places, groups: H, t, R·H; scale: 1/√d_k; seed, threshold, factor: see ``dropout_factors``.
    DIM: d_k; DROPOUT: whether weights are dropped; PRECISION: precision of float32 products; others: block sizes.
"""

import functools
import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ContextManager, Dict, Mapping, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.context.conditional.kernels.triton.plans import interpreted

MIN_WIDTH = 16  # of the matrix units
LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
WIDEN = tl.constexpr(interpreted())  # the interpreter multiplies bfloat16 as if they were integers


@dataclass(frozen=True)
class Settings:
    """Compiler settings of a program."""

    blocks: Mapping[str, int]  # block sizes by name
    warps: int = 4  # number of warps, of 32 threads each
    # settings for wider heads, by minimum width and element size in bytes
    others: Mapping[Tuple[int, int], "Settings"] = field(default_factory=dict)

    def options(self, width: int, dtype: torch.dtype) -> Dict[str, int]:
        """Returns the compiler options for a head width and a type."""
        fitting = [minimum for minimum, size in self.others if size == dtype.itemsize and minimum <= width]
        chosen = self.others[max(fitting), dtype.itemsize] if fitting else self
        return {**chosen.blocks, "num_warps": chosen.warps, "num_stages": 2}


CHOOSE = Settings({"SENTENCES": 64}, others={(16, 4): Settings({"SENTENCES": 32})})
WALK = Settings({"ELEMENTS": 8192})  # of gathered keys; determines the tokens per program
SCORE = Settings({"ROWS": 32})
SCORE_KEYS = Settings({"PAIRS": 64})
ATTEND = Settings(
    {"QUERIES": 64, "KEYS": 32},
    others={
        (128, 2): Settings({"QUERIES": 64, "KEYS": 32}, warps=8),
        (128, 4): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
    },
)
BACKWARD = Settings(
    {"QUERIES": 64, "KEYS": 32},
    others={
        (128, 2): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
        (64, 4): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
        (128, 4): Settings({"QUERIES": 16, "KEYS": 32}, warps=8),
    },
)
ROWWISE = Settings({"ROWS": 32})
ADD_PARTS = Settings({"KEYS": 32})


@triton.jit
def product(a: tl.tensor, b: tl.tensor, PRECISION: tl.constexpr) -> tl.tensor:
    """Returns the matrix product a b, accumulated in float32."""
    if WIDEN:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def dropout_factors(
    seed: tl.int32, pairs: tl.tensor, token: tl.int32, threshold: tl.int32, factor: tl.float32, TOKENS: tl.constexpr
) -> tl.tensor:
    """Returns 0 or 1/(1 − p) for weights of pairs [b] to TOKENS tokens from ``token`` on, a multiple of 4.

    A factor depends on the seed, the pair and the token only, so the backward pass reproduces it. Philox gives four
    numbers at a time, for four adjacent tokens.

    Args:
        seed: seed of the masks.
        pairs: [b] pair numbers.
        token: index of the first token in its sentence.
        threshold: p · 2^31: a random number below drops a weight.
        factor: 1/(1 − p).
        TOKENS: a power of two.
    """
    four = token // 4 + tl.arange(0, TOKENS // 4)
    pair = pairs[:, None] + tl.zeros_like(four)[None, :]
    four = four[None, :] + tl.zeros_like(pair)
    zero = tl.zeros_like(pair)
    a, b, c, d = tl.philox(seed, pair, four, zero, zero)
    random = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), [pairs.shape[0], TOKENS])
    return tl.where((random >> 1).to(tl.int32) >= threshold, factor, 0.0)


def padded(x: Tensor) -> Tensor:
    """Returns x [..., d] contiguous, padded with zeros to a width of the matrix units."""
    lacking = max(MIN_WIDTH, triton.next_power_of_2(x.size(-1))) - x.size(-1)
    return (F.pad(x, (0, lacking)) if lacking else x).contiguous()  # padding by zero elements would copy


def in_common_type(*tensors: Tensor) -> Tuple[Tensor, ...]:
    """Returns the tensors in the widest of their types, at most float32."""
    widest = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    return tuple(x.to(torch.float32 if widest == torch.float64 else widest) for x in tensors)


def on_device_of(x: Tensor) -> ContextManager[object]:
    """Context in which programs are launched on the device of x."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


@dataclass(frozen=True)
class Pairs:
    """Pairs (token, head, kept sentence), grouped: the tokens that keep a sentence attend to it together.

    The pair of place j of head h of the m-th token that selects has number (m·H + h)·t + j; group g = sentence·H + head
    has the pairs order[start[g]:start[g + 1]], in items first[g], …, first[g + 1] − 1 of up to ``item`` pairs each.
    Only the GPU knows the number of items; the grid has the largest possible number, and superfluous programs do
    nothing.
    """

    order: Tensor  # [P] int32, pair numbers by group; empty places come last
    start: Tensor  # [G + 1] int32, first pair of every group, then the end of the last
    first: Tensor  # [G + 1] int32, first item of every group, then their number
    group: Tensor  # [items] int32, group of every item, G for superfluous ones
    slot: Tensor  # [G] int32, first partial sum of a group's items; −1 for a group of at most one item
    slots: int  # maximum number of partial sums
    item: int  # maximum number of pairs of an item

    @classmethod
    def of(cls, sentence: Tensor, sentences: int, item: int, split: bool) -> "Pairs":
        """Creates the pairs of a selection.

        Args:
            sentence: [M, H, t] rows of the kept sentences, −1: none.
            sentences: R.
            item: maximum number of pairs of an item.
            split: whether a group can have more pairs than that.
        """
        heads, device = sentence.size(1), sentence.device
        groups, pairs = sentences * heads, sentence.numel()
        head = torch.arange(heads, device=device, dtype=torch.int32)[:, None]
        group = torch.where(sentence < 0, groups, sentence * heads + head).to(torch.int32).flatten()
        by_group, order = torch.sort(group, stable=True)
        start = torch.searchsorted(by_group, torch.arange(groups + 1, device=device, dtype=torch.int32), out_int32=True)
        items = (start.diff() + (item - 1)).div(item, rounding_mode="floor")
        ends = items.cumsum(0, dtype=torch.int32)
        number = torch.arange(min(groups, pairs) + pairs // item, device=device, dtype=torch.int32)
        is_split = items > 1
        parts = items * is_split
        slot = (parts.cumsum(0, dtype=torch.int32) - parts).masked_fill(~is_split, -1)
        return cls(
            order=order.to(torch.int32),
            start=start,
            first=torch.cat([ends.new_zeros(1), ends]),
            group=torch.searchsorted(ends, number, right=True, out_int32=True),
            slot=slot.to(torch.int32),
            slots=2 * (pairs // item) if split else 0,  # of n > item pairs: ⌈n / item⌉ < 2n / item
            item=item,
        )


@triton.jit
def item_of(
    number: tl.int32, this: tl.int32, start: tl.tensor, first: tl.tensor, item: tl.int32
) -> "Tuple[tl.int32, tl.int32, tl.int32]":  # in quotes, because Triton evaluates annotations
    """Returns the index of an item in its group, and where its pairs begin and end."""
    nth = number - tl.load(first + this)
    begin = tl.load(start + this) + nth * item
    return nth, begin, tl.minimum(begin + item, tl.load(start + this + 1))


@triton.jit
def pairs_of(
    i: tl.tensor, end: tl.int32, order: tl.tensor, items: tl.tensor, head: tl.int32, heads: tl.int32, places: tl.int32
) -> "Tuple[tl.tensor, tl.tensor, tl.tensor]":
    """Returns whether pairs exist [k], their numbers, and the rows (token, head) of their queries.

    Args:
        i: [k] indices in ``order``.
        end: end of the item.
        head: head of the item.
    """
    is_pair = i < end
    pair = tl.load(order + i, mask=is_pair, other=0)
    return is_pair, pair, tl.load(items + pair // (heads * places), mask=is_pair, other=0) * heads + head


@triton.jit
def part_of(slot: tl.tensor, this: tl.int32, nth: tl.int32) -> tl.tensor:
    """Returns where the nth item of a group writes its part; −1: it is the only one and writes the sum itself."""
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
    """Writes an item's x [b, DIM] to rows of ``sums``, or to its own part if other items share these rows.

    Args:
        x: float32.
        sums: [·, DIM].
        parts: [slots, longest, DIM] float32.
        part: see ``part_of``.
        row: [b] int64, in ``sums``.
        place: [b] index of the keys in their sentence.
        is_key: [b] False beyond the sentence.
        longest: maximum number of keys of a sentence.
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
    """Adds up the parts of a group in order.

    Args:
        sums: [N, H, DIM].
        longest: maximum number of keys of a sentence.
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
    """Returns a new tensor for the parts, [slots, longest, DIM]; unused if no group is shared."""
    return torch.empty(max(1, pairs.slots), longest, like.size(-1), dtype=torch.float32, device=like.device)


def add_parts(parts: Tensor, sums: Tensor, offsets: Tensor, pairs: Pairs) -> None:
    """Writes the sums of all parts to their keys in ``sums`` [N, H, DIM]."""
    if pairs.slots:
        add_parts_kernel[(len(pairs.slot),)](
            parts, sums, offsets, pairs.first, pairs.slot, sums.size(1), parts.size(1), DIM=sums.size(-1),
            **ADD_PARTS.options(sums.size(-1), sums.dtype),
        )  # fmt: skip

"""An item of work inside a program: its pairs, and the tokens that they are of; see ``Pairs``."""

from typing import Tuple

import triton
import triton.language as tl


@triton.jit
def item_of(
    number: tl.int32, this: tl.int32, start: tl.tensor, first: tl.tensor, item: tl.int32
) -> "Tuple[tl.int32, tl.int32, tl.int32]":  # in quotes, as Triton looks up what it finds
    """Which item of its group it is, from 0, and where its pairs begin and end.

    Args:
        number: of the item.
        this: its group.
        start, first, item: of ``Pairs``.
    """
    nth = number - tl.load(first + this)
    begin = tl.load(start + this) + nth * item
    return nth, begin, tl.minimum(begin + item, tl.load(start + this + 1))


@triton.jit
def pairs_of(
    i: tl.tensor, end: tl.int32, order: tl.tensor, items: tl.tensor, head: tl.int32, heads: tl.int32, places: tl.int32
) -> "Tuple[tl.tensor, tl.tensor, tl.tensor]":
    """Whether there are pairs [k], which they are, and the rows (token, head) of their queries.

    Args:
        i: [k] places in ``order``.
        end: of the item's.
        order: of ``Pairs``.
        items: [M] the tokens that select.
        head: of the item.
        heads: H.
        places: t.
    """
    is_pair = i < end
    pair = tl.load(order + i, mask=is_pair, other=0)
    return is_pair, pair, tl.load(items + pair // (heads * places), mask=is_pair, other=0) * heads + head

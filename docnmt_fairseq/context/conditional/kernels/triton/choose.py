"""KeepTopT over the sentences of every document ([T] eq. 3-4): a program takes up to 32 tokens of one head."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels.triton.numerics import (
    EMPTY,
    number_of,
    of_one_type,
    on_device_of,
    prepared,
    product,
    sort_keys,
)
from docnmt_fairseq.context.conditional.kernels.triton.settings import CHOOSE
from docnmt_fairseq.context.conditional.kernels.triton.tiles import FIELDS, TILE, Tiles
from docnmt_fairseq.context.conditional.selection import SelectionKey


@triton.jit(do_not_specialize=["places"])
def choose_kernel(
    q: tl.tensor,
    k: tl.tensor,
    tiles: tl.tensor,
    chosen: tl.tensor,
    heads: tl.int32,
    places: tl.int32,
    DIM: tl.constexpr,
    PLACES: tl.constexpr,
    TOKENS: tl.constexpr,
    SENTENCES: tl.constexpr,
    FIELDS: tl.constexpr,
) -> None:
    """Writes the rows of the t best sentences of a tile's tokens, best first; −1: none.

    The best so far are held as keys, see ``sort_keys``. Of a block of sentences the best is taken for as long as it
    drives out the worst of them, for any token; mostly that is not once.

    Args:
        q: [N, H, DIM] queries.
        k: [R, H, DIM] keys.
        tiles: [tiles, FIELDS], see ``TilePlan``.
        chosen: [M, H, places] int64.
        heads: H.
        places: the largest t.
        DIM: d_k.
        PLACES: a power of two, at least ``places``.
        TOKENS: of a tile.
        SENTENCES: of a block.
        FIELDS: of a tile.
    """
    tile = tiles + tl.program_id(0) * FIELDS
    head = tl.program_id(1)
    tokens, kept = tl.load(tile + 2), tl.load(tile + 4)
    first = tl.load(tile + 5)
    end = first + tl.load(tile + 6)
    i, d, column = tl.arange(0, TOKENS), tl.arange(0, DIM), tl.arange(0, SENTENCES)
    is_token = i < tokens
    row = (tl.load(tile + 1) + i).to(tl.int64) * heads + head
    queries = tl.load(q + row[:, None] * DIM + d[None, :], mask=is_token[:, None], other=0.0)
    best = tl.zeros([TOKENS, PLACES], tl.int64) + (tl.arange(0, PLACES).to(tl.int64) + EMPTY)[None, :]
    for start in range(first, end, SENTENCES):
        sentence = start + column
        is_sentence = sentence < end
        of_sentence = sentence.to(tl.int64) * heads + head
        keys = tl.load(k + of_sentence[None, :] * DIM + d[:, None], mask=is_sentence[None, :], other=0.0)
        found = sort_keys(product(queries, keys, "ieee"), sentence[None, :])
        found = tl.where(is_sentence[None, :], found, EMPTY)
        top, worst = tl.max(found, 1), tl.min(best, 1)
        better = tl.max((top > worst).to(tl.int32), 0)
        while better > 0:
            enters = (best == worst[:, None]) & (top > worst)[:, None]
            best = tl.where(enters, top[:, None], best)
            found = tl.where(found == top[:, None], EMPTY, found)
            top, worst = tl.max(found, 1), tl.min(best, 1)
            better = tl.max((top > worst).to(tl.int32), 0)
    row = (tl.load(tile) + i).to(tl.int64) * heads + head
    for place in range(0, places):
        top = tl.max(best, 1)
        is_kept = (top >= EMPTY + PLACES) & (place < kept)
        tl.store(chosen + row * places + place, tl.where(is_kept, number_of(top), -1).to(tl.int64), mask=is_token)
        best = tl.where(best == top[:, None], EMPTY - 1, best)


def choose_largest(q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
    """The rows of the t most relevant sentences, −1: none; see ``SelectionKernel.choose``."""
    plan, tiles = layout.plan(key), layout.plan(Tiles(key)).tiles
    heads = q.size(1)
    q, k = map(prepared, of_one_type(q, k))
    chosen = torch.empty(len(plan.items), heads, plan.most, dtype=torch.long, device=q.device)
    with on_device_of(q):
        choose_kernel[(len(tiles), heads)](
            q, k, tiles, chosen, heads, plan.most, DIM=q.size(-1), PLACES=triton.next_power_of_2(plan.most),
            TOKENS=TILE, FIELDS=FIELDS, **CHOOSE.options(q.size(-1), q.dtype),
        )  # fmt: skip
    return chosen

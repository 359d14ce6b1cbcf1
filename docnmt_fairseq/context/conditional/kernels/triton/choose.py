"""KeepTopT over the sentences of every document ([T] eq. 3-4): a program takes up to 32 tokens of one head."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels.triton.numerics import of_one_type, on_device_of, prepared, product
from docnmt_fairseq.context.conditional.kernels.triton.settings import CHOOSE
from docnmt_fairseq.context.conditional.kernels.triton.tiles import FIELDS, TILE, Tiles
from docnmt_fairseq.context.conditional.selection import SelectionKey

NOBODY = tl.constexpr(2**30)  # from here on numbers are no sentences', but of places that hold none yet


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

    Of a block of sentences the best is taken for as long as it drives out the worst of the best so far, for any token.
    Sentences come in their order, so one that scores as much as another before it never drives that out.

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
    place = tl.arange(0, PLACES)
    none = (place + NOBODY)[None, :]
    best = tl.full([TOKENS, PLACES], float("-inf"), tl.float32)
    who = tl.zeros([TOKENS, PLACES], tl.int32) + none
    for start in range(first, end, SENTENCES):
        sentence = start + column
        is_sentence = sentence < end
        of_sentence = sentence.to(tl.int64) * heads + head
        keys = tl.load(k + of_sentence[None, :] * DIM + d[:, None], mask=is_sentence[None, :], other=0.0)
        found = tl.where(is_sentence[None, :], product(queries, keys, "ieee"), float("-inf"))
        top, worst = tl.max(found, 1), tl.min(best, 1)
        better = tl.max((top > worst).to(tl.int32), 0)
        while better > 0:
            is_top = found == top[:, None]
            wins = tl.min(tl.where(is_top, sentence[None, :], NOBODY), 1)[:, None]
            loses = tl.max(tl.where(best == worst[:, None], who, -1), 1)[:, None]
            enters = (who == loses) & (top > worst)[:, None]
            best = tl.where(enters, top[:, None], best)
            who = tl.where(enters, wins, who)
            found = tl.where(is_top & (sentence[None, :] == wins), float("-inf"), found)
            top, worst = tl.max(found, 1), tl.min(best, 1)
            better = tl.max((top > worst).to(tl.int32), 0)
    row = (tl.load(tile) + i).to(tl.int64) * heads + head
    for nth in range(0, places):
        top = tl.max(best, 1)
        wins = tl.min(tl.where(best == top[:, None], who, NOBODY + PLACES), 1)
        is_kept = (wins < NOBODY) & (nth < kept)
        tl.store(chosen + row * places + nth, tl.where(is_kept, wins, -1).to(tl.int64), mask=is_token)
        is_out = who == wins[:, None]
        best = tl.where(is_out, float("-inf"), best)
        who = tl.where(is_out, none, who)


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

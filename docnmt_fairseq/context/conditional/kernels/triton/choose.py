"""Selection: KeepTopT over the sentences of a document ([T] eq. 3-4), and the walk of trees ([T] sec. 3.3.2)."""

from typing import Dict

import torch
import triton
import triton.language as tl
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels.triton.plans import FIELDS, TILE, Tiles, TreeForm
from docnmt_fairseq.context.conditional.kernels.triton.programs import (
    CHOOSE,
    WALK,
    in_common_type,
    on_device_of,
    padded,
    product,
)
from docnmt_fairseq.context.conditional.selection import SelectionKey

NO_SENTENCE = tl.constexpr(2**30)  # numbers from here on stand for empty places
EMPTY = tl.constexpr(-(2**63) + 1)  # less than any sort key of a score
HIGHEST = tl.constexpr(2**31 - 1)


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

    The best of a block of sentences replaces the worst of the best so far, until this changes nothing for any token.
    Sentences come in order, and one with an equal score never replaces an earlier one.

    Args:
        chosen: [M, H, places] int64.
        PLACES: a power of two, at least ``places``, the largest t.
        TOKENS: tokens of a tile.
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
    none = (place + NO_SENTENCE)[None, :]
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
            wins = tl.min(tl.where(is_top, sentence[None, :], NO_SENTENCE), 1)[:, None]
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
        wins = tl.min(tl.where(best == top[:, None], who, NO_SENTENCE + PLACES), 1)
        is_kept = (wins < NO_SENTENCE) & (nth < kept)
        tl.store(chosen + row * places + nth, tl.where(is_kept, wins, -1).to(tl.int64), mask=is_token)
        is_out = who == wins[:, None]
        best = tl.where(is_out, float("-inf"), best)
        who = tl.where(is_out, none, who)


def choose_largest(q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
    """Returns the rows of the t most relevant sentences, −1: none; see ``SelectionKernel.choose``."""
    plan, tiles = layout.plan(key), layout.plan(Tiles(key))
    heads = q.size(1)
    q, k = map(padded, in_common_type(q, k))
    chosen = torch.empty(len(plan.items), heads, plan.max_t, dtype=torch.long, device=q.device)
    with on_device_of(q):
        choose_kernel[(len(tiles), heads)](
            q, k, tiles, chosen, heads, plan.max_t, DIM=q.size(-1), PLACES=triton.next_power_of_2(plan.max_t),
            TOKENS=TILE, FIELDS=FIELDS, **CHOOSE.options(q.size(-1), q.dtype),
        )  # fmt: skip
    return chosen


@triton.jit
def sort_keys(scores: tl.tensor, numbers: tl.tensor) -> tl.tensor:
    """Returns distinct int64 sort keys: larger for a larger score and, of equal scores, for the lower number.

    The upper half are the bits of the float32 in the order of its values, the lower half is the complement of the
    number.
    """
    scores = tl.where(scores == 0.0, 0.0, scores)  # −0 is 0
    bits = scores.to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & HIGHEST)
    return (bits.to(tl.int64) << 32) | (numbers ^ HIGHEST).to(tl.int64)


@triton.jit(do_not_specialize=["places", "documents", "heights"])
def walk_kernel(
    q: tl.tensor,
    k: tl.tensor,
    tiles: tl.tensor,
    first: tl.tensor,
    counts: tl.tensor,
    chosen: tl.tensor,
    heads: tl.int32,
    places: tl.int32,
    documents: tl.int32,
    heights: tl.int32,
    DIM: tl.constexpr,
    PLACES: tl.constexpr,
    TOKENS: tl.constexpr,
    FIELDS: tl.constexpr,
) -> None:
    """Writes the rows of the sentences that some tokens of a tile find, ascending; −1: none.

    One program walks the whole tree for some tokens and one head. Heights with at most t nodes need no scores: all are
    kept. Below, the children of the kept nodes are scored, and the t best kept. Nodes are numbered from 0 within their
    height; a number beyond the document stands for no node, and so do those of its children.

    Args:
        k: [nodes, H, DIM] keys.
        first, counts: [heights, D], see ``TreeForm``.
        chosen: [M, H, places] int64.
        documents: D.
        PLACES: a power of two, at least ``places``, the largest t.
        TOKENS: tokens of a program.
    """
    tile = tiles + tl.program_id(0) * FIELDS
    head = tl.program_id(1)
    document, kept = tl.load(tile + 3), tl.load(tile + 4)
    i = tl.program_id(2) * TOKENS + tl.arange(0, TOKENS)
    is_token = i < tl.load(tile + 2)
    d, place = tl.arange(0, DIM), tl.arange(0, PLACES)
    row = (tl.load(tile + 1) + i).to(tl.int64) * heads + head
    queries = tl.load(q + row[:, None] * DIM + d[None, :], mask=is_token[:, None], other=0.0).to(tl.float32)
    all_nodes = tl.zeros([TOKENS, PLACES], tl.int32) + place[None, :]
    nodes = all_nodes
    for above in range(heights):
        height = heights - 1 - above
        count = tl.load(counts + height * documents + document)
        if count <= kept:
            nodes = all_nodes
        else:
            children = tl.interleave(2 * nodes, 2 * nodes + 1)  # ascending
            is_node = children < count
            node = tl.load(first + height * documents + document) + tl.minimum(children, count - 1)
            of_node = node.to(tl.int64) * heads + head
            keys = tl.load(k + of_node[:, :, None] * DIM + d[None, None, :]).to(tl.float32)
            scores = sort_keys(tl.sum(queries[:, None, :] * keys, 2), children)
            scores = tl.where(is_node, scores, EMPTY)
            rank = tl.sum((scores[:, None, :] > scores[:, :, None]).to(tl.int32), 2)
            stays = is_node & (rank < kept)
            to = tl.cumsum(stays.to(tl.int32), 1) - 1
            moves = stays[:, None, :] & (to[:, None, :] == place[None, :, None])
            nodes = tl.sum(tl.where(moves, children[:, None, :], 0), 2)
            nodes = tl.where(place[None, :] < tl.sum(stays.to(tl.int32), 1)[:, None], nodes, count)
    count = tl.load(counts + document)
    found = tl.where(nodes < count, tl.load(first + document) + nodes, -1)
    row = (tl.load(tile) + i).to(tl.int64) * heads + head
    at = row[:, None] * places + place[None, :]
    tl.store(chosen + at, found.to(tl.int64), mask=is_token[:, None] & (place < places)[None, :])


def walk_options(places: int, width: int, dtype: torch.dtype) -> Dict[str, int]:
    """Returns the compiler options: as many tokens per program as it can gather the children's keys of."""
    options = WALK.options(width, dtype)
    tokens = options.pop("ELEMENTS") // (2 * places * width)
    return {**options, "TOKENS": max(1, min(TILE, tokens))}


def choose_by_walk(q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
    """Returns the rows of the sentences found, −1: none; see ``SelectionKernel.choose_in_tree``."""
    plan, tiles = layout.plan(key), layout.plan(Tiles(key))
    first, counts = layout.plan(TreeForm())
    heads, places = q.size(1), triton.next_power_of_2(plan.max_t)
    q, keys = map(padded, in_common_type(q, keys))
    chosen = torch.empty(len(plan.items), heads, plan.max_t, dtype=torch.long, device=q.device)
    options = walk_options(places, q.size(-1), q.dtype)
    with on_device_of(q):
        walk_kernel[(len(tiles), heads, TILE // options["TOKENS"])](
            q, keys, tiles, first, counts, chosen, heads, plan.max_t, first.size(1), len(first),
            DIM=q.size(-1), PLACES=places, FIELDS=FIELDS, **options,
        )  # fmt: skip
    return chosen

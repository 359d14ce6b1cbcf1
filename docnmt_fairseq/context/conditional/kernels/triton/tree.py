"""TraverseTree ([T] sec. 3.3.2): the whole walk of some tokens, one head, is one program."""

from typing import Dict

import torch
import triton
import triton.language as tl
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels.triton.numerics import of_one_type, on_device_of, prepared
from docnmt_fairseq.context.conditional.kernels.triton.settings import WALK
from docnmt_fairseq.context.conditional.kernels.triton.tiles import FIELDS, TILE, Tiles, TreeForm
from docnmt_fairseq.context.conditional.selection import SelectionKey

EMPTY = tl.constexpr(-(2**63) + 1)  # less than any key of a score
HIGHEST = tl.constexpr(2**31 - 1)


@triton.jit
def sort_keys(scores: tl.tensor, numbers: tl.tensor) -> tl.tensor:
    """int64 keys, all different: larger for a larger score, among equals for the lower number.

    The bits of a float32 in the order of their values are the upper half, the number's complement is the lower.
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

    Heights with at most t nodes need no scores: all are kept. Below, the children of the nodes kept are scored, and the
    t best kept. Nodes are numbered from 0 in their height; a number too high for the document stands for none, and so
    are its children's numbers.

    Args:
        q: [N, H, DIM] queries.
        k: [nodes, H, DIM] keys.
        tiles: [tiles, FIELDS], see ``TilePlan``.
        first, counts: [heights, D], see ``TreePlan``.
        chosen: [M, H, places] int64.
        heads: H.
        places: the largest t.
        documents: D.
        heights: of the trees.
        DIM: d_k.
        PLACES: a power of two, at least ``places``.
        TOKENS: that walk in a program.
        FIELDS: of a tile.
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
    """What is given to the compiler: as many tokens a program as it can gather the children's keys of."""
    options = WALK.options(width, dtype)
    tokens = options.pop("NUMBERS") // (2 * places * width)
    return {**options, "TOKENS": max(1, min(TILE, tokens))}


def choose_by_walk(q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
    """The rows of the sentences found, −1: none; see ``SelectionKernel.choose_in_tree``."""
    plan, tiles, form = layout.plan(key), layout.plan(Tiles(key)).tiles, layout.plan(TreeForm())
    heads, places = q.size(1), triton.next_power_of_2(plan.most)
    q, keys = map(prepared, of_one_type(q, keys))
    chosen = torch.empty(len(plan.items), heads, plan.most, dtype=torch.long, device=q.device)
    options = walk_options(places, q.size(-1), q.dtype)
    with on_device_of(q):
        walk_kernel[(len(tiles), heads, TILE // options["TOKENS"])](
            q, keys, tiles, form.first, form.counts, chosen, heads, plan.most, form.first.size(1), form.heights,
            DIM=q.size(-1), PLACES=places, FIELDS=FIELDS, **options,
        )  # fmt: skip
    return chosen

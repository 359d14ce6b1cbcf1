"""KeepTopT over the sentences of every document ([T] eq. 3-4), tokens in chunks: relevance is never held whole."""

from typing import Iterator, Sequence, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.attention_plans import AttentionBlock
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.selection import Choosing, SelectionKey
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast
from docnmt_fairseq.layers.tie_break import stable_top_k

CHUNK = 2**18  # relevance scores held at a time on a CPU
PASSES = 2**10  # up to t·n of these, t passes for the maximum are faster than sorting on a CPU


@torch.no_grad()
def choose_largest(q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
    """The rows of the t most relevant sentences, −1: none; see ``SelectionKernel.choose``."""
    plan, most = layout.plan(Choosing(key)), layout.plan(key).most
    chosen = []
    with without_autocast(q):
        for block, dropped in zip(plan.sentences.blocks, plan.dropped):
            place = _places(q, k, block, most)  # [b, w, H, ≤ most]
            rows = (place + block.key[:, :1, None, None]).masked_fill_(dropped, -1)
            lacking = most - rows.size(-1)
            chosen.append(F.pad(rows, (0, lacking), value=-1) if lacking else rows)
    return plan.sentences.gather(chosen)


def largest(relevance: Tensor, t: int) -> Tensor:
    """Where the t largest of the last dimension are, largest first, the lowest first among equals.

    Args:
        relevance: [..., n], overwritten.
        t: at most n.
    """
    if t * relevance.size(-1) > PASSES or relevance.device.type != "cpu":
        return stable_top_k(relevance, t)[1]
    places = relevance.new_empty(*relevance.shape[:-1], t, dtype=torch.long)
    for rank in range(t):
        highest = relevance.max(-1, keepdim=True).indices  # the first of equals
        places[..., rank : rank + 1] = highest
        relevance.scatter_(-1, highest, -torch.inf)
    return places


def _places(q: Tensor, k: Tensor, block: AttentionBlock, most: int) -> Tensor:
    """The places of the most relevant sentences in their documents, [b, w, H, min(most, n)]."""
    heads, n = q.size(1), block.key.size(1)
    dtype, t = computing_type(q.dtype), min(most, n)
    keys = k.index_select(0, block.key.flatten()).to(dtype).unflatten(0, block.key.shape).permute(0, 2, 3, 1)
    places = torch.empty(*block.query.shape, heads, t, dtype=torch.long, device=q.device)
    for some in _chunks(block.query.shape, max(1, chunk_elements(q.device, CHUNK) // (heads * n))):
        index = block.query[some]
        queries = q.index_select(0, index.flatten()).to(dtype).unflatten(0, index.shape).transpose(1, 2)
        relevance = queries @ keys[some[0]]  # [b, H, w, n] of the chunk
        if block.key_padding is not None:
            relevance.masked_fill_(block.key_padding[some[0], None, None, :], -torch.inf)
        places[some] = largest(relevance, t).transpose(1, 2)
    return places


def _chunks(shape: Sequence[int], size: int) -> Iterator[Tuple[slice, slice]]:
    """Slices of rows and columns of about ``size`` places each."""
    rows, columns = max(1, size // shape[1]), min(size, shape[1])
    for row in range(0, shape[0], rows):
        for column in range(0, shape[1], columns):
            yield slice(row, row + rows), slice(column, column + columns)

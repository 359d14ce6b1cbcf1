"""Relevance of chosen sentences, R = q·k/√d_k ([T] eq. 3); no copy of a key for every place is held."""

import math
from typing import Any, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast

CHUNK = 2**18  # numbers of gathered keys held at a time on a CPU


class ChosenScores(torch.autograd.Function):
    """R of M tokens at the places that hold a sentence, −∞ elsewhere."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """R, [M, H, t], float32 at least; see ``SelectionKernel.score``."""
        ctx.save_for_backward(q, k, items, sentence)
        t, d = sentence.size(-1), q.size(-1)
        queries, keys, row = _rows(q, k, items, sentence)
        step = max(1, chunk_elements(q.device, CHUNK) // (t * d))
        with without_autocast(q):
            parts = [
                torch.bmm(keys.index_select(0, places.flatten()).view(-1, t, d), query.unsqueeze(-1))
                for query, places in zip(queries.split(step), row.split(step))
            ]
        scores = torch.cat(parts).view(sentence.shape)
        return scores.mul_(1 / math.sqrt(d)).masked_fill_(sentence < 0, -torch.inf)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tuple[Tensor, Tensor, None, None]:
        """The gradients of q and k: weighted sums of the keys a token chose, of the tokens that chose a key."""
        q, k, items, sentence = ctx.saved_tensors
        queries, keys, row = _rows(q, k, items, sentence)
        weight = (grad * (1 / math.sqrt(q.size(-1)))).masked_fill_(sentence < 0, 0).flatten(0, 1)
        of_queries = F.embedding_bag(row, keys, mode="sum", per_sample_weights=weight)
        of_q = torch.zeros_like(q).index_copy_(0, items, of_queries.view(-1, *q.shape[1:]).to(q.dtype))
        sorted_row, pair = torch.sort(row.flatten(), stable=True)
        first = torch.searchsorted(sorted_row, torch.arange(len(keys), device=q.device))
        query = pair.div(row.size(1), rounding_mode="floor")
        weight = weight.flatten().index_select(0, pair)
        of_keys = F.embedding_bag(query, queries, first, mode="sum", per_sample_weights=weight)
        return of_q, of_keys.view_as(k).to(k.dtype), None, None


def _rows(q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """The queries of ``items`` [M·H, d_k], keys [R·H, d_k] and the chosen keys' rows [M·H, t], −1 as if 0."""
    heads, dtype = q.size(1), computing_type(q.dtype)
    queries = q.index_select(0, items) if len(items) < len(q) else q
    row = sentence.clamp(min=0) * heads + torch.arange(heads, device=q.device)[:, None]
    return queries.to(dtype).flatten(0, 1), k.to(dtype).flatten(0, 1), row.flatten(0, 1)

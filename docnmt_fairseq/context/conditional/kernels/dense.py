"""Kernel ``dense``: the equations as written, with N×N matrices; for tests, benchmarks and comparison."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey
from docnmt_fairseq.layers.precision import computing_type, without_autocast
from docnmt_fairseq.layers.tie_break import stable_top_k


@KERNELS.register("dense")
class DenseKernel(SelectionKernel):
    """One matrix of all tokens by all tokens, −∞ outside selected sentences and between documents."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """See :class:`SelectionKernel`; it serves everything."""
        return True

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """See :class:`SelectionKernel`."""
        plan = layout.plan(key)
        document = layout.token_document.index_select(0, plan.items)
        with without_autocast(q):
            relevance = _products(q.index_select(0, plan.items), k)  # [M, H, R]
        relevance = relevance.masked_fill(document[:, None, None] != layout.sentences.item_row, -torch.inf)
        _, sentence = stable_top_k(relevance, plan.max_t)
        return sentence.masked_fill(torch.arange(sentence.size(-1), device=q.device) >= plan.limit, -1)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """See :class:`SelectionKernel`."""
        with without_autocast(q):
            relevance = _products(q.index_select(0, items), k) / math.sqrt(q.size(-1))
        return relevance.gather(-1, sentence.clamp(min=0)).masked_fill(sentence < 0, -torch.inf)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """See :class:`SelectionKernel`."""
        row = selection.sentence.masked_fill(selection.sentence < 0, layout.tokens.rows)  # an extra column, cut off
        relevance = selection.scores.new_full((*row.shape[:2], layout.tokens.rows + 1), -torch.inf)
        relevance = relevance.scatter(-1, row, selection.scores)[..., layout.token_sentence]  # [M, H, N]
        with without_autocast(q):
            logits = _products(q.index_select(0, selection.items), k) / math.sqrt(q.size(-1)) + relevance
            weights = F.dropout(torch.softmax(logits, dim=-1), dropout, training=dropout > 0)
            return torch.einsum("mhn,nhd->mhd", weights, v.to(weights.dtype)).to(q.dtype)


def _products(q: Tensor, k: Tensor) -> Tensor:
    """Returns q·k of all pairs, [M, H, K], from [M, H, d_k] and [K, H, d_k]."""
    dtype = computing_type(q.dtype)
    return torch.einsum("mhd,khd->mhk", q.to(dtype), k.to(dtype))

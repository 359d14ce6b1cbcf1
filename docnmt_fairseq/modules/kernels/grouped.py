"""Kernel ``torch``: exact attention over the words of selected sentences, at the cost of those words only ([T] eq. 7).

The relevance R is constant inside one (word, sentence) pair, so with o_{i,s} and l_{i,s} the attention output and the
log-sum-exp of word i over the words of sentence s alone, out_i = Σ_s softmax_s(R_{i,s} + l_{i,s}) o_{i,s}. Pairs are
sorted by head and sentence, and the queries of one sentence attend together in blocks: no N×N matrix is built.
"""

import math
from dataclasses import dataclass
from typing import Iterator, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.layout import DocumentLayout, Ragged
from docnmt_fairseq.modules.kernels.kernel import KERNELS, SelectionKernel
from docnmt_fairseq.modules.sentence_selection import Selection, keep_top_t

BLOCK = 32  # queries that attend together: a sentence attracts about m·t of them


@dataclass(frozen=True)
class PairBlocks:
    """Pairs (word, head, kept sentence) in blocks of ``BLOCK`` queries to one sentence and head, by sentence length.

    Attributes:
        query: [blocks · BLOCK] rows of the queries [N·H, d_k]; row 0 fills up.
        group: [blocks] sentence rank · H + head.
        slot: [pairs] where every pair's result is.
        order: [R] sentences by length: the rank's meaning.
        heads: H.
    """

    query: Tensor
    group: Tensor
    slot: Tensor
    order: np.ndarray
    heads: int

    def by_length(self, words: Ragged) -> Iterator[Tuple[slice, Tensor, Tensor]]:
        """Yields a slice of blocks, the rows of their keys [b, w] in [N·H, d_k], and where those are padding."""
        first_rank = 0
        for rows in words.buckets():
            last_rank = first_rank + len(rows)
            ends = torch.tensor([first_rank * self.heads, last_rank * self.heads], device=self.group.device)
            start, end = torch.searchsorted(self.group, ends).tolist()
            if end > start:
                index, padding = words.block(rows)
                rank = self.group[start:end] // self.heads - first_rank
                key = index[rank] * self.heads + (self.group[start:end] % self.heads)[:, None]
                yield slice(start, end), key, None if padding is None else padding[rank]
            first_rank = last_rank


def block_pairs(selection: Selection, valid: Tensor, words: Ragged) -> PairBlocks:
    """Returns the pairs of a selection in blocks.

    Args:
        selection: of M words, H heads.
        valid: [pairs] numbers of the places that hold a sentence, among M·H·t.
        words: words in sentences.
    """
    _, heads, t = selection.sentence.shape
    device = selection.sentence.device
    order = np.concatenate(words.buckets())
    rank = torch.empty(words.rows, dtype=torch.long, device=device)
    rank[torch.from_numpy(order).to(device)] = torch.arange(words.rows, device=device)
    word_head = (selection.items[:, None] * heads + torch.arange(heads, device=device)).flatten()  # [M·H] query rows
    head = torch.arange(heads, device=device).repeat_interleave(t).repeat(len(selection.items))
    group = (rank[selection.sentence.flatten()] * heads + head)[valid]
    sorted_group, pair = torch.sort(group, stable=True)
    counts = torch.bincount(sorted_group, minlength=words.rows * heads)
    blocks = (counts + BLOCK - 1) // BLOCK
    shift = (blocks.cumsum(0) - blocks) * BLOCK - (
        counts.cumsum(0) - counts
    )  # a group's first slot less its first pair
    place = torch.arange(len(pair), device=device) + shift.index_select(0, sorted_group)
    slot = torch.empty_like(place).index_copy_(0, pair, place)
    block_group = torch.repeat_interleave(torch.arange(len(counts), device=device), blocks)
    query = torch.zeros(len(block_group) * BLOCK, dtype=torch.long, device=device)
    query.index_copy_(0, place, word_head.index_select(0, valid.div(t, rounding_mode="floor").index_select(0, pair)))
    return PairBlocks(query, block_group, slot, order, heads)


@KERNELS.register("torch")
class GroupedKernel(SelectionKernel):
    """Plain PyTorch, on every device and type."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns True."""
        return True

    @torch.no_grad()
    def choose(
        self, q: Tensor, k: Tensor, layout: DocumentLayout, kept: np.ndarray, documents: Optional[np.ndarray] = None
    ) -> Tensor:
        """Returns the chosen rows; see :class:`SelectionKernel`."""
        name = "document>sentences" + ("" if documents is None else " " + documents.tobytes().hex())
        plan = layout.plan(name, layout.document_words, layout.sentences, rows=documents)
        kept = np.minimum(kept, layout.sentences.lengths)
        most = int(max(kept[block.rows].max() for block in plan.blocks))
        chosen = []
        for block in plan.blocks:
            batch, width = block.query.shape
            queries = q.index_select(0, block.query.flatten()).view(batch, width, *q.shape[1:])
            keys = k.index_select(0, block.key.flatten()).view(batch, -1, *k.shape[1:])
            relevance = torch.einsum("bwhd,bnhd->bwhn", queries, keys)
            if block.key_padding is not None:
                relevance = relevance.masked_fill(block.key_padding[:, None, None, :], -torch.inf)
            _, place = keep_top_t(relevance, most)  # [b, w, H, ≤ most]
            sentence = place + block.key[:, :1, None, None]
            sentence = F.pad(sentence, (0, most - sentence.size(-1)), value=-1)
            t = torch.as_tensor(kept[block.rows], device=q.device)[:, None, None, None]
            chosen.append(sentence.masked_fill(torch.arange(most, device=q.device) >= t, -1))
        return plan.gather(chosen)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R; see :class:`SelectionKernel`."""
        heads = torch.arange(q.size(1), device=q.device)[:, None]
        keys = k[sentence.clamp(min=0), heads]  # [M, H, t, d_k]
        scores = torch.einsum("mhd,mhtd->mht", q.index_select(0, items), keys) / math.sqrt(q.size(-1))
        return scores.masked_fill(sentence < 0, -torch.inf)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, selection: Selection, words: Ragged, dropout: float) -> Tensor:
        """Returns [M, H, d_k]; see :class:`SelectionKernel`."""
        places = selection.sentence.flatten()
        filled = bool((places >= 0).all())
        if filled:
            valid = torch.arange(places.numel(), device=q.device)
        else:
            valid = (places >= 0).nonzero().squeeze(1)
        pairs = block_pairs(selection, valid, words)
        q_rows, k_rows, v_rows = (x.flatten(0, 1) for x in (q, k, v))
        outputs, sums = [], []
        for blocks, key, padding in pairs.by_length(words):
            query = pairs.query[blocks.start * BLOCK : blocks.stop * BLOCK]
            q_block = q_rows.index_select(0, query).view(-1, BLOCK, q.size(-1))  # [b, BLOCK, d_k]
            k_block = k_rows.index_select(0, key.flatten()).view(*key.shape, -1)  # [b, w, d_k]
            v_block = v_rows.index_select(0, key.flatten()).view(*key.shape, -1)
            logits = torch.bmm(q_block, k_block.transpose(1, 2)) / math.sqrt(q.size(-1))  # [b, BLOCK, w]
            if padding is not None:
                logits = logits.masked_fill(padding[:, None, :], -torch.inf)
            log_sum = logits.logsumexp(-1, keepdim=True)
            weights = F.dropout((logits - log_sum).exp(), dropout, training=dropout > 0)
            outputs.append(torch.bmm(weights, v_block).flatten(0, 1))
            sums.append(log_sum.flatten())
        output = torch.cat(outputs).index_select(0, pairs.slot)  # [pairs, d_v]
        log_sum = torch.cat(sums).index_select(0, pairs.slot)
        if not filled:
            output = output.new_zeros(places.numel(), output.size(-1)).index_copy(0, valid, output)
            log_sum = log_sum.new_zeros(places.numel()).index_copy(0, valid, log_sum)
        share = torch.softmax(selection.scores + log_sum.view_as(selection.scores), dim=-1)  # [M, H, t]
        return (share.unsqueeze(-1) * output.view(*share.shape, -1)).sum(-2)

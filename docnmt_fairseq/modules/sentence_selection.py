"""Which sentences a word keeps: relevance and KeepTopT ([T] eq. 3-4), for every head and word by itself."""

import math
from dataclasses import dataclass
from typing import Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.layout import AttentionPlan, DocumentLayout


@dataclass(frozen=True)
class Selection:
    """The kept sentences of M words.

    Attributes:
        items: [M] the words, as item numbers of the packed states.
        scores: [M, H, t] relevance of the kept sentences, −∞ at places that hold none.
        sentence: [M, H, t] their rows.
        filled: no place is empty.
    """

    items: Tensor
    scores: Tensor
    sentence: Tensor
    filled: bool


def keep_top_t(relevance: Tensor, t: int) -> Tuple[Tensor, Tensor]:
    """Returns the min(t, n) largest of the last dimension, and where they are, largest first.

    Ties are resolved towards the lowest index, so that results are deterministic.

    Args:
        relevance: [..., n].
        t: at least 1.
    """
    n = relevance.size(-1)
    if t >= n:
        return torch.sort(relevance, dim=-1, descending=True, stable=True)
    values, index = torch.topk(relevance, t + 1, dim=-1)
    # topk leaves open which of equals it takes; that matters only where equals straddle the cut.
    if (values[..., t - 1] == values[..., t]).any():
        values, index = torch.sort(relevance, dim=-1, descending=True, stable=True)
    return values[..., :t], index[..., :t]


def select_sentences(
    q: Tensor, k: Tensor, layout: DocumentLayout, plan: AttentionPlan, kept: np.ndarray, always_keep_own: bool = False
) -> Selection:
    """Returns KeepTopT(Relevance(q, k), t) for the words in the rows of ``plan``.

    Args:
        q: [N, H, d_k] x W^{Qs} of every word.
        k: [R, H, d_k] S W^{Ks} of every sentence.
        layout: the batch.
        plan: words of documents (queries) to their sentences (keys).
        kept: [D] t of every document.
        always_keep_own: keep a word's own sentence besides the t.
    """
    most = int(max(kept[block.rows].max() for block in plan.blocks))
    scores, sentences, filled = [], [], True
    for block in plan.blocks:
        batch, width = block.query.shape
        queries = q.index_select(0, block.query.flatten()).view(batch, width, *q.shape[1:])
        keys = k.index_select(0, block.key.flatten()).view(batch, -1, *k.shape[1:])
        relevance = torch.einsum("bwhd,bnhd->bwhn", queries, keys) / math.sqrt(q.size(-1))
        if block.key_padding is not None:
            relevance = relevance.masked_fill(block.key_padding[:, None, None, :], -torch.inf)
        value, place = keep_top_t(relevance, most)  # [b, w, H, ≤ t]
        missing = most - value.size(-1)
        value = F.pad(value, (0, missing), value=-torch.inf)
        t = torch.as_tensor(kept[block.rows], device=q.device)[:, None, None, None]
        value = value.masked_fill(torch.arange(most, device=q.device) >= t, -torch.inf)
        first, last = (block.key[:, edge, None, None, None] for edge in (0, -1))
        sentence = torch.minimum(F.pad(place, (0, missing)) + first, last)
        filled = filled and missing == 0 and bool((kept[block.rows] == most).all())
        if always_keep_own:
            own = layout.token_sentence.index_select(0, block.query.flatten()).view(batch, width, 1, 1)
            own = own.expand(-1, -1, q.size(1), -1)
            own_score = relevance.gather(-1, own - first)
            already = ((sentence == own) & (value > -torch.inf)).any(-1, keepdim=True)
            value = torch.cat([value, own_score.masked_fill(already, -torch.inf)], dim=-1)
            sentence = torch.cat([sentence, own], dim=-1)
            filled = False
        scores.append(value)
        sentences.append(sentence)
    return Selection(plan.items, plan.gather(scores), plan.gather(sentences), filled)

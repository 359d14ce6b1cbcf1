"""Which sentences a word keeps: KeepTopT ([T] eq. 4), for every head and word by itself."""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout


@dataclass(frozen=True)
class Selection:
    """The kept sentences of M words.

    Attributes:
        items: [M] the words, as item numbers of the packed states, ascending.
        sentence: [M, H, t] rows of the kept sentences, −1 at places that hold none.
        scores: [M, H, t] their relevance, −∞ at places that hold none.
        documents: those whose words they are, ascending; None: all.
    """

    items: Tensor
    sentence: Tensor
    scores: Tensor
    documents: Optional[np.ndarray] = None

    def of_documents(self, documents: np.ndarray, layout: DocumentLayout) -> "Selection":
        """Returns the part of some of the documents, ascending."""
        items = layout.words_of_documents(documents)
        place = torch.searchsorted(self.items, items)
        return Selection(items, self.sentence.index_select(0, place), self.scores.index_select(0, place), documents)


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


def keep_own(sentence: Tensor, own: Tensor) -> Tensor:
    """Returns the chosen sentences and the own one besides, [M, H, t + 1]: −1 there if it was chosen anyway.

    Args:
        sentence: [M, H, t] rows of the chosen sentences.
        own: [M] row of each word's own sentence.
    """
    own = own[:, None, None].expand(-1, sentence.size(1), 1)
    chosen = (sentence == own).any(-1, keepdim=True)
    return torch.cat([sentence, own.masked_fill(chosen, -1)], dim=-1)

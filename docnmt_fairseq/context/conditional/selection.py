"""Which sentences a token keeps: KeepTopT ([T] eq. 4), for every head and token by itself."""

from dataclasses import dataclass
from typing import List, Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.attention_plans import AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey


@dataclass(frozen=True)
class SelectionPlan:
    """The documents whose tokens select, and the others, where every sentence is kept.

    Attributes:
        kept: [D] t of every document, at most its sentences.
        documents: those whose tokens select, ascending.
        items: [M] their tokens, ascending.
        most: the largest t among them; 0 where there are none.
        limit: [M, 1, 1] t of the document of each of ``items``.
        dense: tokens of the other documents attend to all tokens of their document; None where there are none.
        order: [N] where every token is among those of ``items`` followed by those of ``dense``.
    """

    kept: np.ndarray
    documents: np.ndarray
    items: Tensor
    most: int
    limit: Tensor
    dense: Optional[AttentionPlan]
    order: Tensor

    @classmethod
    def of(cls, layout: DocumentLayout, kept: np.ndarray, documents: Optional[np.ndarray] = None) -> "SelectionPlan":
        """The plan for t of every document.

        Args:
            layout: the batch.
            kept: [D] t, at least 1; more than a document's sentences: all of them.
            documents: those whose tokens select, ascending; None: those with more than t sentences.
        """
        tokens, lengths = layout.document_tokens, layout.sentences.lengths
        documents = np.flatnonzero(kept < lengths) if documents is None else documents
        others = np.setdiff1d(np.arange(len(lengths)), documents)
        kept = np.minimum(kept, lengths)
        items = tokens.items_of(documents)
        return cls(
            kept,
            documents,
            layout.index(items),
            int(kept[documents].max(initial=0)),
            layout.index(np.repeat(kept[documents], tokens.lengths[documents])[:, None, None]),
            AttentionPlan(tokens, tokens, rows=others) if len(others) else None,
            layout.index(np.argsort(np.concatenate([items, tokens.items_of(others)]))),
        )


SelectionKey = PlanKey[SelectionPlan]


@dataclass(frozen=True)
class KeptSentences(SelectionKey):
    """t of every document at a point of a schedule.

    Attributes:
        top_t: t at the end, 0: all sentences, always.
        top_t_start: t at the beginning, 0: all sentences of the document.
        progress: share of the annealing that is done, 0 to 1.
    """

    top_t: int
    top_t_start: int = 0
    progress: float = 1.0

    def of(self, sentences: np.ndarray) -> np.ndarray:
        """t of documents with so many sentences, [D] from [D]: between 1 and their number."""
        if self.top_t == 0:
            return sentences
        start = np.minimum(self.top_t_start, sentences) if self.top_t_start else sentences
        end = np.minimum(self.top_t, start)
        return np.ceil(start - (start - end) * self.progress - 1e-6).astype(np.int64).clip(min=1)

    def make(self, layout: DocumentLayout) -> SelectionPlan:
        """See :class:`PlanKey`."""
        return SelectionPlan.of(layout, self.of(layout.sentences.lengths))


@dataclass(frozen=True)
class Widened(SelectionKey):
    """The same tokens, with at least ``least`` places each: what a search keeps on its way to t."""

    selection: SelectionKey
    least: int

    def make(self, layout: DocumentLayout) -> SelectionPlan:
        """See :class:`PlanKey`."""
        plan = layout.plan(self.selection)
        return SelectionPlan.of(layout, np.maximum(plan.kept, self.least), plan.documents)


@dataclass(frozen=True)
class ChoicePlan:
    """The tokens that select beside the sentences that they select from.

    Attributes:
        sentences: the tokens look at the sentences of their document.
        limits: [b, 1, 1, 1] of each of its blocks, t of the documents.
        dropped: [b, 1, 1, min(most, n)] of each of its blocks, which of the most relevant sentences are beyond t.
    """

    sentences: AttentionPlan
    limits: List[Tensor]
    dropped: List[Tensor]


@dataclass(frozen=True)
class Choosing(PlanKey[ChoicePlan]):
    """What the tokens that select choose from; ``selection`` says which tokens these are."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> ChoicePlan:
        """See :class:`PlanKey`."""
        selecting = layout.plan(self.selection)
        plan = AttentionPlan(layout.document_tokens, layout.sentences, rows=selecting.documents)
        limits = [selecting.kept[rows][:, None, None, None] for rows in plan.groups]
        longest = [int(layout.sentences.lengths[rows].max()) for rows in plan.groups]
        dropped = [np.arange(min(selecting.most, n)) >= limit for n, limit in zip(longest, limits)]
        return ChoicePlan(plan, [*map(layout.index, limits)], [*map(layout.index, dropped)])


@dataclass(frozen=True)
class Selection:
    """The kept sentences of the M tokens that select.

    Attributes:
        key: names which tokens these are.
        items: [M] the tokens, ascending.
        sentence: [M, H, t] rows of the kept sentences, −1 at places that hold none.
        scores: [M, H, t] their relevance, −∞ at places that hold none.
    """

    key: SelectionKey
    items: Tensor
    sentence: Tensor
    scores: Tensor


@torch.no_grad()
def keep_top_p(sentence: Tensor, scores: Tensor, p: float, temperature: float) -> Tensor:
    """The fewest of the chosen sentences that have a share p of softmax(R/τ) over all chosen; −1 in the other places.

    Args:
        sentence: [M, H, t] rows of the chosen sentences, −1: none.
        scores: [M, H, t] their relevance, −∞ where there is none.
        p: the share; the most relevant one is always kept.
        temperature: τ.
    """
    shares, place = (scores / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    before = shares.cumsum(-1) - shares
    enough = (before >= p) & (before > 0)
    return sentence.masked_fill(enough.scatter(-1, place, enough), -1)


def keep_own(sentence: Tensor, own: Tensor) -> Tensor:
    """The chosen sentences and the own one besides, [M, H, t + 1]: −1 there if it was chosen anyway.

    Args:
        sentence: [M, H, t] rows of the chosen sentences.
        own: [M] row of each token's own sentence.
    """
    own = own[:, None, None].expand(-1, sentence.size(1), 1)
    chosen = (sentence == own).any(-1, keepdim=True)
    return torch.cat([sentence, own.masked_fill(chosen, -1)], dim=-1)

"""Kernel ``torch``: plain PyTorch, on every device and type."""

from dataclasses import dataclass
from typing import Any, Iterator, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.kernels.pytorch.choosing import choose_largest
from docnmt_fairseq.context.conditional.kernels.pytorch.chosen_scores import ChosenScores
from docnmt_fairseq.context.conditional.kernels.pytorch.grouped_attention import GroupedPlan, attend_grouped
from docnmt_fairseq.context.conditional.kernels.pytorch.masked_documents import MaskedPlan, attend_masked
from docnmt_fairseq.context.conditional.selection import Choosing, Selection, SelectionKey

TOKENS_A_PLACE = 100  # measured: documents of up to so many tokens for every kept sentence are faster as a whole


@dataclass(frozen=True)
class SizePlan:
    """The tokens that select, by the size of their documents.

    Attributes:
        small: the documents that are computed as a whole; None: there are none.
        large: the others.
        of_small, of_large: [·] the places of their tokens among all that select; None: these are all.
        order: [M] where every token is among those of small documents followed by those of large ones; None where
            there are but small or large ones.
    """

    small: Optional[MaskedPlan]
    large: Optional[GroupedPlan]
    of_small: Optional[Tensor] = None
    of_large: Optional[Tensor] = None
    order: Optional[Tensor] = None


@dataclass(frozen=True)
class BySize(PlanKey[SizePlan]):
    """The tokens that select, by the size of their documents.

    Attributes:
        selection: names which tokens these are.
        more: places of each token for sentences beside the t chosen ones.
    """

    selection: SelectionKey
    more: int = 0

    def make(self, layout: DocumentLayout) -> SizePlan:
        """See :class:`PlanKey`."""
        plan = layout.plan(self.selection)
        places = plan.most + self.more
        small = layout.document_tokens.lengths[plan.documents] <= TOKENS_A_PLACE * places
        parts = plan.documents[small], plan.documents[~small]
        of_small = MaskedPlan.of(layout, parts[0]) if len(parts[0]) else None
        of_large = GroupedPlan.of(layout, parts[1], places) if len(parts[1]) else None
        if of_small is None or of_large is None:
            return SizePlan(of_small, of_large)
        is_small = np.repeat(small, layout.document_tokens.lengths[plan.documents])
        numbers = np.flatnonzero(is_small), np.flatnonzero(~is_small)
        order = np.argsort(np.concatenate(numbers))
        return SizePlan(of_small, of_large, *map(layout.index, (*numbers, order)))


@KERNELS.register("torch")
class PyTorchKernel(SelectionKernel):
    """Small documents as a whole, with what is not selected masked; of others, selected sentences only."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """See :class:`SelectionKernel`; it serves everything."""
        return True

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        """See :class:`SelectionKernel`."""
        yield Choosing(key)
        yield BySize(key, int(keeps_own))
        yield from super().plans(key, keeps_own, walk)

    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """See :class:`SelectionKernel`."""
        return choose_largest(q, k, layout, key)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """See :class:`SelectionKernel`; float32 at least."""
        return ChosenScores.apply(q, k, items, sentence)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """See :class:`SelectionKernel`."""
        plan = layout.plan(BySize(selection.key, selection.sentence.size(-1) - layout.plan(selection.key).most))
        outputs = []
        if plan.small is not None:
            outputs.append(attend_masked(q, k, v, *_part(selection, plan.of_small), plan.small, dropout))
        if plan.large is not None:
            outputs.append(attend_grouped(q, k, v, *_part(selection, plan.of_large), plan.large, dropout))
        return outputs[0] if plan.order is None else torch.cat(outputs).index_select(0, plan.order)


def _part(selection: Selection, tokens: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """The sentences and scores of some of the tokens that select; None: of all."""
    if tokens is None:
        return selection.sentence, selection.scores
    return selection.sentence.index_select(0, tokens), selection.scores.index_select(0, tokens)

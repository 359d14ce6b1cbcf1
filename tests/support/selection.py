"""Selection with t of every document as a test names it."""

from dataclasses import dataclass
from typing import Iterable, Optional, Tuple

import numpy as np

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import SelectionPlan


@dataclass(frozen=True)
class Keeping(PlanKey[SelectionPlan]):
    """t of every document; the documents that select: None: those with more than t sentences."""

    kept: Tuple[int, ...]
    documents: Optional[Tuple[int, ...]] = None

    def make(self, layout: DocumentLayout) -> SelectionPlan:
        documents = None if self.documents is None else np.array(self.documents, dtype=np.int64)
        return SelectionPlan.of(layout, np.array(self.kept), documents)


def keeping(kept: Iterable[int], documents: Optional[Iterable[int]] = None) -> Keeping:
    return Keeping(tuple(map(int, kept)), None if documents is None else tuple(map(int, documents)))


def all_select(kept: Iterable[int]) -> Keeping:
    """Tokens of every document select, also where that is all of its sentences."""
    kept = list(kept)
    return keeping(kept, range(len(kept)))

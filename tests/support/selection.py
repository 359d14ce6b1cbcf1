"""Selection with a given t for every document."""

from dataclasses import dataclass
from typing import Iterable, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.selection import SelectionPlan


@dataclass(frozen=True)
class Keeping(PlanKey[SelectionPlan]):
    """Given t of every document, and the documents that select; None: those with more than t sentences."""

    kept: Tuple[int, ...]
    documents: Optional[Tuple[int, ...]] = None

    def make(self, layout: DocumentLayout) -> SelectionPlan:
        documents = None if self.documents is None else np.array(self.documents, dtype=np.int64)
        return SelectionPlan.of(layout, np.array(self.kept), documents)


def keeping(kept: Iterable[int], documents: Optional[Iterable[int]] = None) -> Keeping:
    return Keeping(tuple(map(int, kept)), None if documents is None else tuple(map(int, documents)))


def all_select(kept: Iterable[int]) -> Keeping:
    """Returns a selection in which every document selects, even all of its sentences."""
    kept = list(kept)
    return keeping(kept, range(len(kept)))


def attended(*arguments, **options) -> Tensor:
    """Returns the output of conditional attention without the selection."""
    return conditional_attention(*arguments, **options)[0]


def random_inputs(layout: DocumentLayout, d_k: int = 3, heads: int = 2, dtype: torch.dtype = torch.double, seed=0):
    """Returns q, k, v, q_s [N, H, d_k] and k_s [R, H, d_k]."""
    generator = torch.Generator().manual_seed(seed)
    rows = [layout.tokens.total] * 4 + [layout.tokens.rows]
    inputs = [torch.randn(n, heads, d_k, generator=generator, dtype=torch.double).to(dtype) for n in rows]
    return [x.requires_grad_() for x in inputs]

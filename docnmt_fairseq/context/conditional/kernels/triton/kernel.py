"""Kernel ``triton``: GPU programs in Triton, exact, without an N×N matrix and without reading from the GPU."""

from typing import Any, Iterator, Optional

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.kernels.triton.plans import (
    HALF_TYPES,
    MAX_PLACES,
    MAX_WIDTH,
    Tiles,
    TreeForm,
    Work,
    missing,
    runs_on,
)
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey


def _fits(layout: DocumentLayout, key: SelectionKey, q: Tensor) -> bool:
    return layout.plan(key).max_t <= MAX_PLACES and q.size(-1) <= MAX_WIDTH


class TritonKernel(SelectionKernel):
    """Triton programs on CUDA; t > 16 and heads wider than 128 fall back to kernel ``torch``."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        return dtype in (torch.float32, *HALF_TYPES) and runs_on(device)

    def preferred(self, device: torch.device, dtype: torch.dtype) -> bool:
        # Half types on a GPU only: float32 has no matrix units of that precision.
        return device.type == "cuda" and dtype in HALF_TYPES and self.serves(device, dtype)

    def missing(self) -> Optional[str]:
        return missing()

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        yield Tiles(key)
        yield Work()
        if walk is not None:
            yield Tiles(walk)
            yield TreeForm()

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        if not _fits(layout, key, q):
            return super().choose(q, k, layout, key)
        from docnmt_fairseq.context.conditional.kernels.triton.choose import choose_largest

        return choose_largest(q, k, layout, key)

    @torch.no_grad()
    def choose_in_tree(self, q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        if not _fits(layout, key, q):
            return super().choose_in_tree(q, keys, layout, key)
        from docnmt_fairseq.context.conditional.kernels.triton.choose import choose_by_walk

        return choose_by_walk(q, keys, layout, key)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        if q.size(-1) > MAX_WIDTH:
            return super().score(q, k, items, sentence)
        from docnmt_fairseq.context.conditional.kernels.triton.score import SelectedScores

        return SelectedScores.apply(q, k, items, sentence)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        if not _fits(layout, selection.key, q):
            return super().attend(q, k, v, layout, selection, dropout)
        from docnmt_fairseq.context.conditional.kernels.triton.attend import AttendToSelected

        inputs = q, k.to(q.dtype), v.to(q.dtype), selection.scores.float()
        return AttendToSelected.apply(*inputs, selection.items, selection.sentence, layout.plan(Work()), dropout)


KERNELS["triton"] = TritonKernel()

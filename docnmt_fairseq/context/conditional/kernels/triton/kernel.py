"""Kernel ``triton``: GPU programs in Triton, exact, without an N×N matrix and without reading from the GPU.

A GPU runs a grid of programs. A program that selects sentences takes a tile: up to ``TILE`` tokens of one document for
one head. This file does not import Triton: the programs are in the other files of this folder.
"""

import functools
import importlib.util
import os
from dataclasses import dataclass
from typing import Any, Iterator, Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.kernels.pytorch.kernel import PyTorchKernel
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey
from docnmt_fairseq.context.conditional.tree import TreesOfBatch

MIN_CAPABILITY = (8, 0)  # bfloat16 in matrix units: Ampere and later
HALF_TYPES = (torch.bfloat16, torch.float16)
MAX_PLACES = 16  # selection holds this many scores and sentence numbers per token in registers
MAX_WIDTH = 128  # of heads
TILE = 32  # fewer tokens would not use Blackwell's tensor memory, which Triton 3.7 fails on
FIELDS = 7  # of a tile
MIN_ITEM = 256  # queries
QUERIES_PER_TOKEN = 4  # minimum number of queries of an item per token of the longest sentence


@functools.cache
def missing() -> Optional[str]:
    """Returns the reason why Triton is not available on this machine; None if it is."""
    return "Triton is not installed" if importlib.util.find_spec("triton") is None else None


def interpreted() -> bool:
    """Returns whether Triton's interpreter replaces the GPU: programs run on the CPU, slowly, for tests."""
    return os.environ.get("TRITON_INTERPRET", "") in ("1", "true", "on")


def runs_on(device: torch.device) -> bool:
    """Returns whether the programs run on a device: an NVIDIA GPU, Ampere or later."""
    if missing() is not None:
        return False
    if interpreted():
        return device.type == "cpu"
    if device.type != "cuda" or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(device) >= MIN_CAPABILITY


@KERNELS.register("triton")
class TritonKernel(SelectionKernel):
    """Triton programs on CUDA; t > 16 and heads wider than 128 fall back to kernel ``torch``."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """See :class:`SelectionKernel`."""
        return dtype in (torch.float32, *HALF_TYPES) and runs_on(device)

    def preferred(self, device: torch.device, dtype: torch.dtype) -> bool:
        """See :class:`SelectionKernel`; half types on a GPU only, as float32 has no matrix units of that precision."""
        return device.type == "cuda" and dtype in HALF_TYPES and self.serves(device, dtype)

    def missing(self) -> Optional[str]:
        """See :class:`SelectionKernel`."""
        return missing()

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        """See :class:`SelectionKernel`."""
        yield Tiles(key)
        yield Work()
        if walk is not None:
            yield Tiles(walk)
            yield TreeForm()
        yield FallbackPlans(key, keeps_own, walk)

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """See :class:`SelectionKernel`."""
        if layout.plan(key).max_t > MAX_PLACES or q.size(-1) > MAX_WIDTH:
            return PyTorchKernel().choose(q, k, layout, key)
        from docnmt_fairseq.context.conditional.kernels.triton.choose import choose_largest

        return choose_largest(q, k, layout, key)

    @torch.no_grad()
    def choose_in_tree(self, q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """See :class:`SelectionKernel`."""
        if layout.plan(key).max_t > MAX_PLACES or q.size(-1) > MAX_WIDTH:
            return super().choose_in_tree(q, keys, layout, key)
        from docnmt_fairseq.context.conditional.kernels.triton.choose import choose_by_walk

        return choose_by_walk(q, keys, layout, key)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """See :class:`SelectionKernel`; float32."""
        if q.size(-1) > MAX_WIDTH:
            return PyTorchKernel().score(q, k, items, sentence)
        from docnmt_fairseq.context.conditional.kernels.triton.score import SelectedScores

        return SelectedScores.apply(q, k, items, sentence)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """See :class:`SelectionKernel`."""
        if layout.plan(selection.key).max_t > MAX_PLACES or q.size(-1) > MAX_WIDTH:
            return PyTorchKernel().attend(q, k, v, layout, selection, dropout)
        from docnmt_fairseq.context.conditional.kernels.triton.attend import AttendToSelected

        inputs = q, k.to(q.dtype), v.to(q.dtype), selection.scores.float()
        return AttendToSelected.apply(*inputs, selection.items, selection.sentence, layout.plan(Work()), dropout)


@dataclass(frozen=True)
class FallbackPlans(PlanKey[bool]):
    """Whether t exceeds the programs' limit; the plans of kernel ``torch`` are made in that case.

    Attributes:
        selection, keeps_own, walk: see ``SelectionKernel.plans``.
    """

    selection: SelectionKey
    keeps_own: bool = False
    walk: Optional[SelectionKey] = None

    def make(self, layout: DocumentLayout) -> bool:
        """See :class:`PlanKey`."""
        keys = [self.selection, *([] if self.walk is None else [self.walk])]
        exceeds = max(layout.plan(key).max_t for key in keys) > MAX_PLACES
        if exceeds:
            layout.with_plans(PyTorchKernel().plans(self.selection, self.keeps_own, self.walk))
        return exceeds


@dataclass(frozen=True)
class TilePlan:
    """Tokens that select, in tiles.

    Attributes:
        tiles: [tiles, FIELDS] int32: index of the first token among those that select; its number; number of tokens;
            document; its t; its first sentence; its number of sentences.
    """

    tiles: Tensor


@dataclass(frozen=True)
class Tiles(PlanKey[TilePlan]):
    """Tokens that select according to ``selection``, in tiles."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> TilePlan:
        """See :class:`PlanKey`."""
        plan = layout.plan(self.selection)
        tokens, sentences = layout.document_tokens, layout.sentences
        lengths = tokens.lengths[plan.documents]
        tiles = -(-lengths // TILE)
        number = np.repeat(np.arange(len(tiles)), tiles)  # [tiles] index among the documents that select
        done = TILE * (np.arange(len(number)) - (np.cumsum(tiles) - tiles)[number])  # tokens before, in the document
        document = plan.documents[number]
        columns = (
            (np.cumsum(lengths) - lengths)[number] + done,
            tokens.offsets[document] + done,
            np.minimum(lengths[number] - done, TILE),
            document,
            plan.top_t[document],
            sentences.offsets[document],
            sentences.lengths[document],
        )
        return TilePlan(layout.index(np.stack(columns, axis=1).astype(np.int32)))


@dataclass(frozen=True)
class TreePlan:
    """Shape of the batch's trees, see :class:`~docnmt_fairseq.context.conditional.tree.SentenceTrees`.

    Attributes:
        first, counts: [heights, D] int32, first node and number of nodes of every document at every height.
        heights: number of heights.
    """

    first: Tensor
    counts: Tensor
    heights: int


@dataclass(frozen=True)
class TreeForm(PlanKey[TreePlan]):
    """Shape of the batch's trees."""

    def make(self, layout: DocumentLayout) -> TreePlan:
        """See :class:`PlanKey`."""
        trees = layout.plan(TreesOfBatch())
        first, counts = (layout.index(array.astype(np.int32)) for array in (trees.first, trees.counts))
        return TreePlan(first, counts, len(trees.counts))


@dataclass(frozen=True)
class WorkPlan:
    """Sizes of the work of attention.

    Attributes:
        offsets: [R + 1] int32, first token of every sentence, then the total.
        longest: tokens of the longest sentence.
        item: maximum number of queries of one sentence and head per program. Contributions of several programs to the
            gradient of the same keys are held separately, 2 · longest elements per program and channel; with at least
            four times as many queries as the longest sentence has tokens, that is less than the queries themselves.
        split: whether a sentence can have more queries than that, because a document has as many tokens.
    """

    offsets: Tensor
    longest: int
    item: int
    split: bool


@dataclass(frozen=True)
class Work(PlanKey[WorkPlan]):
    """Sizes of the work of attention."""

    def make(self, layout: DocumentLayout) -> WorkPlan:
        """See :class:`PlanKey`."""
        longest = layout.tokens.longest
        item = max(MIN_ITEM, QUERIES_PER_TOKEN * longest)
        offsets = layout.index(layout.tokens.offsets.astype(np.int32))
        return WorkPlan(offsets, longest, item, layout.document_tokens.longest > item)

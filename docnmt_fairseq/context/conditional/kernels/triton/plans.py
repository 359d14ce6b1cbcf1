"""Availability of Triton, and plans of the work that its programs do. Does not import Triton.

A GPU runs a grid of programs. A program that selects sentences takes a tile: up to ``TILE`` tokens of one document for
one head.
"""

import functools
import importlib.util
import os
from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import SelectionKey
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


@dataclass(frozen=True)
class Tiles(PlanKey[Tensor]):
    """Tokens that select according to ``selection``, in tiles: [tiles, FIELDS] int32.

    The fields are the index of the first token among those that select; its number; number of tokens; document; its t;
    its first sentence; its number of sentences.
    """

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> Tensor:
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
        return layout.index(np.stack(columns, axis=1).astype(np.int32))


@dataclass(frozen=True)
class TreeForm(PlanKey[Tuple[Tensor, Tensor]]):
    """First node and number of nodes of every document at every height, [heights, D] int32; see ``SentenceTrees``."""

    def make(self, layout: DocumentLayout) -> Tuple[Tensor, Tensor]:
        trees = layout.plan(TreesOfBatch())
        return layout.index(trees.first.astype(np.int32)), layout.index(trees.counts.astype(np.int32))


@dataclass(frozen=True)
class WorkPlan:
    """Sizes of the work of attention."""

    offsets: Tensor  # [R + 1] int32, first token of every sentence, then the total
    longest: int  # tokens of the longest sentence
    # maximum number of queries of one sentence and head per program. Contributions of several programs to the gradient
    # of the same keys are held separately, 2 · longest elements per program and channel; with at least four times as
    # many queries as the longest sentence has tokens, that is less than the queries themselves.
    item: int
    split: bool  # whether a sentence can have more queries than that, because a document has as many tokens


@dataclass(frozen=True)
class Work(PlanKey[WorkPlan]):
    """Sizes of the work of attention."""

    def make(self, layout: DocumentLayout) -> WorkPlan:
        longest = layout.tokens.longest
        item = max(MIN_ITEM, QUERIES_PER_TOKEN * longest)
        offsets = layout.index(layout.tokens.offsets.astype(np.int32))
        return WorkPlan(offsets, longest, item, layout.document_tokens.longest > item)

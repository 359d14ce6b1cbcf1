"""States of sources of sentences without a batch."""

from dataclasses import dataclass, replace
from typing import Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.sources import SourceKey, SourceRows
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.packed import CombinationPlan, lookup


@dataclass(frozen=True)
class Seen:
    """Packed states [M, d] of one source, and those that each sentence attends to, see SourceRows."""

    states: Tensor
    lengths: np.ndarray
    items: Optional[np.ndarray] = None

    @property
    def rows(self):
        return SourceRows(self.lengths, self.items)

    def with_states(self, states):
        return replace(self, states=states)

    def padded(self):
        """Returns the states [S, n, d] and the padding [S, n] of all sentences."""
        index, padding = map(torch.from_numpy, self.rows.block(np.arange(len(self.lengths))))
        return lookup(self.states, index), padding


def combine_packed(combination, x, targets, sources, evidence=None):
    """Returns context vectors and shares of packed decoder states x, from the states of all sources."""
    projected = combination.project_sources([source.states for source in sources])
    plan = CombinationPlan.make(targets, [source.rows for source in sources])
    return plan.combine(combination, x, projected, evidence)


def projected_sources(combination, sources):
    """Returns the projected states of every source."""
    projected = combination.project_sources([source.states for source in sources])
    return [source.with_states(states) for source, states in zip(sources, projected)]


@dataclass(frozen=True)
class Given(SourceKey):
    """Given rows, independent of the batch."""

    lengths: Tuple[int, ...]
    items: Tuple[int, ...]

    def make(self, layout: DocumentLayout) -> SourceRows:
        return SourceRows(np.array(self.lengths), np.array(self.items))


def rows_of(source, layout):
    """Returns the states of a source that each sentence attends to."""
    seen = layout.plan(source.rows)
    items = np.arange(len(source.states)) if seen.items is None else seen.items
    return [source.states[torch.as_tensor(part)] for part in np.split(items, np.cumsum(seen.lengths)[:-1])]


def build_combination(name, config, dtype=torch.float64):
    """Returns a combination with random parameters."""
    torch.manual_seed(0)
    combination = ATTENTION_COMBINATIONS[name](config).to(dtype)
    for parameter in combination.parameters():
        parameter.data.normal_(0, 0.5)
    return combination

"""The states of one source, and which of them each decoded sentence sees."""

from dataclasses import dataclass, replace
from typing import List, Optional, Tuple

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.sources import Padded, PaddedRows, SourceKey
from docnmt_fairseq.layers.precision import gather_rows


@dataclass(frozen=True)
class SourceStates:
    """What one encoder gives: its states, without padding, and the sentences that they are for.

    Attributes:
        states: [M, d_k] packed states.
        rows: names which of them each decoded sentence sees.
    """

    states: Tensor
    rows: SourceKey

    def with_states(self, states: Tensor) -> "SourceStates":
        """Other values [M, w] of the same states."""
        return replace(self, states=states)

    def padded(self, layout: DocumentLayout, sentences: Optional[np.ndarray] = None) -> Tuple[Tensor, Tensor]:
        """The states [S, n, d_k] of decoded sentences padded together, n at least 1, and the padding [S, n].

        Padding is True; what stands there is some state or zero, and must be masked by whoever attends.

        Args:
            layout: the batch.
            sentences: which of them, None: all.
        """
        if sentences is None:
            plan = layout.plan(Padded(self.rows))
        else:
            plan = PaddedRows(*map(layout.index, layout.plan(self.rows).block(sentences)))
        return lookup(self.states, plan.index), plan.padding


def padded_sources(
    sources: List[SourceStates],
    projected: List[Tensor],
    layout: DocumentLayout,
    sentences: Optional[np.ndarray] = None,
) -> Tuple[List[Tensor], List[Tensor]]:
    """What is attended to of every source, [S, n_k, w_k], and the paddings [S, n_k], for a search.

    Args:
        sources: their states, whose rows say who sees what.
        projected: [M_k, w_k] what is attended to of these states.
        layout: the batch.
        sentences: which decoded sentences are meant, None: all.
    """
    padded = [source.with_states(states).padded(layout, sentences) for source, states in zip(sources, projected)]
    return [states for states, _ in padded], [padding for _, padding in padded]


def lookup(states: Tensor, index: Tensor) -> Tensor:
    """States [..., w] by their numbers; of no states zeros."""
    states = states if len(states) else states.new_zeros(1, *states.shape[1:])
    return gather_rows(states, index.flatten()).unflatten(0, index.shape)

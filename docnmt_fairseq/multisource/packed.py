"""Sources as packed states, and combinations over them: states are padded only here, in groups of similar length."""

from dataclasses import dataclass, replace
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged, Slots, attention_groups
from docnmt_fairseq.batch.sources import Padded, PaddedRows, SourceKey, SourceRows, TargetsAndSources
from docnmt_fairseq.layers.capture import joined
from docnmt_fairseq.layers.precision import gather_rows
from docnmt_fairseq.multisource.base import AttentionCombination


@dataclass(frozen=True)
class SourceStates:
    """Packed output of one encoder, and the states that each decoded sentence sees."""

    states: Tensor  # [M, d_k] packed states
    rows: SourceKey  # key of the plan that maps decoded sentences to their states

    def with_states(self, states: Tensor) -> "SourceStates":
        """The same mapping with other values [M, w], e.g. projected ones."""
        return replace(self, states=states)

    def padded(self, layout: DocumentLayout, sentences: Optional[np.ndarray] = None) -> Tuple[Tensor, Tensor]:
        """Padded states [S, n, d_k], n at least 1, and the padding mask [S, n].

        States at padding are arbitrary and must be masked.

        Args:
            sentences: numbers of decoded sentences; None: all.
        """
        if sentences is None:
            plan = layout.plan(Padded(self.rows))
        else:
            plan = PaddedRows(*map(layout.index, layout.plan(self.rows).block(sentences)))
        return lookup(self.states, plan.index), plan.padding


def padded_sources(
    sources: List[SourceStates], projected: List[Tensor], layout: DocumentLayout, sentences: Optional[np.ndarray] = None
) -> Tuple[List[Tensor], List[Tensor]]:
    """Padded keys and values [S, n_k, w_k] and padding masks [S, n_k] of every source, for decoding.

    Args:
        projected: [M_k, w_k] keys and values of their packed states.
        sentences: numbers of decoded sentences; None: all.
    """
    padded = [source.with_states(states).padded(layout, sentences) for source, states in zip(sources, projected)]
    return [states for states, _ in padded], [padding for _, padding in padded]


def lookup(states: Tensor, index: Tensor) -> Tensor:
    """States [..., w] by number; zeros if there are no states at all."""
    states = states if len(states) else states.new_zeros(1, *states.shape[1:])
    return gather_rows(states, index.flatten()).unflatten(0, index.shape)


@dataclass(frozen=True)
class CombinationPlan:
    """Mapping of packed queries to the packed states of each source that they see, in groups of rows."""

    queries: Slots  # positions of queries, group by group
    keys: List[List[PaddedRows]]  # [groups][sources] state numbers and padding

    @classmethod
    def make(cls, targets: Ragged, sources: List[SourceRows]) -> "CombinationPlan":
        """Plan in which the tokens of sentence i of ``targets`` see the states of sentence i of each source."""
        groups = attention_groups(targets.lengths, np.sum([source.lengths for source in sources], axis=0))
        keys = [[PaddedRows(*map(targets.index, source.block(rows))) for source in sources] for rows in groups]
        return cls(Slots(targets, groups), keys)

    @classmethod
    def of_attention(cls, plan: AttentionPlan) -> "CombinationPlan":
        """Single-source plan equivalent to an attention plan."""
        keys = []
        for block in plan.blocks:
            padding = torch.zeros_like(block.key, dtype=torch.bool) if block.key_padding is None else block.key_padding
            keys.append([PaddedRows(block.key, padding)])
        return cls(plan.queries, keys)

    def gather(self, projected: List[Tensor]) -> List[Tuple[List[Tensor], List[Tensor]]]:
        """Per group, keys and values [b, n_k, w_k] and paddings [b, n_k] of every source, from packed [M_k, w_k]."""
        return [
            (
                [lookup(states, rows.index) for states, rows in zip(projected, of_group)],
                [rows.padding for rows in of_group],
            )
            for of_group in self.keys
        ]

    def combine(
        self, combination: AttentionCombination, x: Tensor, projected: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Context vectors [N_t, d_c] and shares [N_t, K]; see :class:`AttentionCombination`.

        Args:
            x: [N_t, d_q] packed decoder states.
            projected: [M_k, w_k] output of ``project_sources`` for the packed states of each source.
            evidence: [N_t, d_e] with a sentinel.
        """
        queries = self.queries.split(gather_rows(x, self.queries.index))
        evidences: List[Optional[Tensor]] = [None] * len(queries)
        if evidence is not None:
            evidences = [*self.queries.split(gather_rows(evidence, self.queries.index))]
        groups = zip(queries, self.gather(projected), evidences)
        with joined(lambda chi: chi.index_select(0, self.queries.slots)):
            results = [combination(of_group, *seen, evidence) for of_group, seen, evidence in groups]
        context, shares = (torch.cat([result.flatten(0, 1) for result in side]) for side in zip(*results))
        return context.index_select(0, self.queries.slots), shares.index_select(0, self.queries.slots)


@dataclass(frozen=True)
class TargetsToAllSources(TargetsAndSources[CombinationPlan]):
    """Plan key: target tokens attend to all sources of their sentence."""

    def make(self, layout: DocumentLayout) -> CombinationPlan:
        return CombinationPlan.make(layout.target_tokens, [layout.plan(source) for source in self.sources])

"""Combinations over packed states: padded only here, sentences of similar lengths together."""

from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.attention_plans import AttentionPlan, Slots
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.ragged import Ragged, attention_groups
from docnmt_fairseq.batch.sources import PaddedRows, SourceRows, TargetsAndSources
from docnmt_fairseq.layers.capture import joined
from docnmt_fairseq.layers.precision import gather_rows
from docnmt_fairseq.multisource.base import AttentionCombination
from docnmt_fairseq.multisource.source_states import lookup


@dataclass(frozen=True)
class CombinationPlan:
    """Which packed states of each source packed queries see, in groups of rows.

    Attributes:
        queries: where queries stand, group by group.
        keys: [groups][sources] numbers of states, and the padding.
    """

    queries: Slots
    keys: List[List[PaddedRows]]

    @classmethod
    def make(cls, targets: Ragged, sources: List[SourceRows]) -> "CombinationPlan":
        """The plan in which the tokens of sentence i of ``targets`` see what each source has of sentence i.

        Raises:
            ValueError: a source is of another number of sentences.
        """
        for source in sources:
            if len(source.lengths) != targets.rows:
                raise ValueError(f"{targets.rows} sentences, but a source is of {len(source.lengths)}")
        groups = attention_groups(targets.lengths, np.sum([source.lengths for source in sources], axis=0))
        keys = [[PaddedRows(*map(targets.index, source.block(rows))) for source in sources] for rows in groups]
        return cls(Slots(targets, groups), keys)

    @classmethod
    def of_attention(cls, plan: AttentionPlan) -> "CombinationPlan":
        """The plan of one source that an attention goes by."""
        keys = []
        for block in plan.blocks:
            padding = torch.zeros_like(block.key, dtype=torch.bool) if block.key_padding is None else block.key_padding
            keys.append([PaddedRows(block.key, padding)])
        return cls(plan.queries, keys)

    def gather(self, projected: List[Tensor]) -> List[Tuple[List[Tensor], List[Tensor]]]:
        """What each group sees of every source, [b, n_k, w_k], and the paddings [b, n_k], from packed [M_k, w_k]."""
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
            combination: what combines.
            x: [N_t, d_q] packed decoder states.
            projected: [M_k, w_k] of its ``project_sources`` over the packed states of each source.
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
    """Target tokens attend to all sources of their sentence."""

    def make(self, layout: DocumentLayout) -> CombinationPlan:
        """See :class:`PlanKey`."""
        return CombinationPlan.make(layout.target_tokens, [layout.plan(source) for source in self.sources])

"""Combinations over packed states: padded only here, sentences of similar lengths together."""

from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.buckets import attention_groups
from docnmt_fairseq.modules.attention_combination.contract import AttentionCombination
from docnmt_fairseq.modules.recording import joined
from docnmt_fairseq.modules.source_states import SourceStates
from docnmt_fairseq.ragged import AttentionPlan, Ragged, Slots


class CombinationPlan:
    """Which packed states of each source packed queries see, in groups of rows; made once for all layers.

    Args:
        queries: where queries stand, group by group.
        keys: [groups][sources] numbers of states [b, n], and the padding [b, n], True there.
    """

    def __init__(self, queries: Slots, keys: List[List[Tuple[Tensor, Tensor]]]):
        self.queries = queries
        self.keys = keys

    @classmethod
    def make(cls, targets: Ragged, sources: List[SourceStates]) -> "CombinationPlan":
        """Returns the plan in which the words of sentence i of ``targets`` see what each source has of sentence i."""
        for source in sources:
            if len(source.lengths) != targets.rows:
                raise ValueError(f"{targets.rows} sentences, but a source is of {len(source.lengths)}")
        groups = attention_groups(targets.lengths, np.sum([source.lengths for source in sources], axis=0))
        keys = [[index_of(source, rows) for source in sources] for rows in groups]
        return cls(Slots(targets, groups), keys)

    @classmethod
    def of_attention(cls, plan: AttentionPlan) -> "CombinationPlan":
        """Returns the plan of one source that an attention goes by."""
        nothing = [torch.zeros_like(block.key, dtype=torch.bool) for block in plan.blocks]
        paddings = (absent if padding is None else padding for absent, padding in zip(nothing, plan.keys.paddings))
        return cls(plan.queries, [[(block.key, padding)] for block, padding in zip(plan.blocks, paddings)])

    def gather(self, memories: List[Tensor]) -> List[Tuple[List[Tensor], List[Tensor]]]:
        """Returns the memories [b, n_k, w_k] and paddings [b, n_k] of each group from packed ones [M_k, w_k]."""
        some = [memory if len(memory) else memory.new_zeros(1, memory.size(1)) for memory in memories]
        return [
            (
                [gathered(memory, index) for memory, (index, _) in zip(some, of_group)],
                [padding for _, padding in of_group],
            )
            for of_group in self.keys
        ]

    def combine(
        self, combination: AttentionCombination, x: Tensor, memories: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Returns context vectors [N_t, d_c] and shares [N_t, K]; see :class:`AttentionCombination`.

        Args:
            combination: what combines.
            x: [N_t, d_q] packed decoder states.
            memories: [M_k, w_k] of its ``remember`` over the packed states of each source.
            evidence: [N_t, d_e] with a sentinel.
        """
        queries = self.queries.split(x.index_select(0, self.queries.index))
        proofs = [None] * len(queries)
        if evidence is not None:
            proofs = self.queries.split(evidence.index_select(0, self.queries.index))
        groups = zip(queries, self.gather(memories), proofs)
        with joined(lambda chi: chi.index_select(0, self.queries.slots)):
            results = [combination(of_group, *seen, proof) for of_group, seen, proof in groups]
        context, shares = (torch.cat([result.flatten(0, 1) for result in side]) for side in zip(*results))
        return context.index_select(0, self.queries.slots), shares.index_select(0, self.queries.slots)


def gathered(memory: Tensor, index: Tensor) -> Tensor:
    """Returns [b, n, w] from memory [M, w] and numbers [b, n]."""
    return memory.index_select(0, index.flatten()).unflatten(0, index.shape)


def index_of(source: SourceStates, rows: np.ndarray) -> Tuple[Tensor, Tensor]:
    """Returns which states [b, n] some sentences see, and the padding [b, n]."""
    numbers = torch.arange(max(1, len(source.states)), device=source.states.device)[:, None]
    index, padding = SourceStates(numbers, source.lengths, source.items).block(rows)
    return index.squeeze(-1), padding


def combine_packed(
    combination: AttentionCombination,
    x: Tensor,
    targets: Ragged,
    sources: List[SourceStates],
    evidence: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """Returns context vectors [N_t, d_c] and shares [N_t, K]; see :class:`AttentionCombination`.

    Args:
        combination: what combines; its memory is computed once a state.
        x: [N_t, d_q] packed decoder states.
        targets: the sentences that they are of.
        sources: their states, main source first.
        evidence: [N_t, d_e] with a sentinel.
    """
    memories = combination.remember([source.states for source in sources])
    return CombinationPlan.make(targets, sources).combine(combination, x, memories, evidence)

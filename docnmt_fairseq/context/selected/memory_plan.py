"""Context sequences of a batch, and the tokens that address them ([M] sec. 4.3)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import List, Optional, Tuple

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.context_sentences import ContextRows, ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey, WithinSentences
from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged, Slots, attention_groups
from docnmt_fairseq.recurrent.cells import StepOrder


@dataclass(frozen=True)
class AddressBlock:
    """Sets of tokens, padded together, with the sequences that each addresses."""

    sequences: Tensor  # [b, J] the sequences, padded by the last one
    absent: Tensor  # [b, J] True at padding
    tokens: Tensor  # [b, J, L] items of the sequences, padded by the last one
    padding: Tensor  # [b, J, L] True at padding


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of every token."""

    tokens: Ragged  # tokens in sentences
    sequences: Ragged  # the sequences, packed
    # [their items] token of each item, N for the break symbol; None: the sequences are all sentences in order
    items: Optional[Tensor]
    within_sequences: Optional[AttentionPlan]  # self-attention within sequences; None if no token has a memory
    sets: Ragged  # sets of sequences addressed by the same tokens
    set_members: Tensor  # [their sum] sequences of every set, one set after another
    set_of_query: Tensor  # [tokens with a memory] set that each token addresses, in ascending order of the tokens
    queries: Slots  # tokens that address each set, in the order of the blocks
    blocks: List[AddressBlock]  # the sets, padded together
    has_context: Tensor  # [N] True for tokens with a memory
    steps: Optional[StepOrder] = None  # order in which an RNN processes the sequences; None without an RNN

    def scatter(self, results: Tensor) -> Tensor:
        """Returns [N, d] from the results of tokens with a memory; zero elsewhere."""
        return results.new_zeros(self.tokens.total, results.size(1)).index_copy(0, self.queries.items, results)


@dataclass(frozen=True)
class MemoryKey(PlanKey[MemoryPlan]):
    """Memory of every token of a batch."""

    context: ContextSentences
    joined: bool  # whether a sentence's context sentences form one sequence with break symbols
    # one of ``MEMORY_SCOPES``: a token addresses the sequences of its own sentence, of all sentences of its document,
    # or of the batch
    scope: str
    attends: bool = True  # whether there is self-attention within sequences
    reads: bool = False  # whether an RNN processes the sequences

    def make(self, layout: DocumentLayout) -> MemoryPlan:
        contexts = layout.plan(self.context)
        items, sequences = None, layout.tokens
        of_row = np.split(contexts.sentences, contexts.first[1:])
        if self.joined:
            items, sequences = _join(layout.tokens, contexts)
            number = np.cumsum(contexts.counts > 0) - 1
            of_row = [number[row : row + 1] if count else number[:0] for row, count in enumerate(contexts.counts)]
        tokens, members = self._addressed(layout, of_row)
        kept = np.array([number for number, sequence in enumerate(members) if len(sequence)], dtype=np.int64)
        sets = Ragged(np.array([len(members[number]) for number in kept], dtype=np.int64), layout.device)
        set_members = np.concatenate([np.zeros(0, dtype=np.int64), *(members[number] for number in kept)])
        keys = np.array([sequences.lengths[members[number]].sum() for number in kept], dtype=np.int64)
        groups = attention_groups(tokens.lengths[kept], keys) if len(kept) else []
        has_context = np.zeros(layout.tokens.total, dtype=bool)
        has_context[tokens.items_of(kept)] = True
        within: Optional[AttentionPlan] = None
        if self.attends and len(kept):
            within = AttentionPlan(sequences, sequences) if self.joined else layout.plan(WithinSentences())
        return MemoryPlan(
            layout.tokens,
            sequences,
            None if items is None else layout.index(items),
            within,
            sets,
            layout.index(set_members),
            layout.index(np.repeat(np.arange(len(kept)), tokens.lengths[kept])),
            Slots(tokens, [kept[group] for group in groups]),
            [_block(sets, set_members, sequences, group) for group in groups],
            layout.index(has_context),
            StepOrder(sequences) if self.reads and len(kept) else None,
        )

    def _addressed(self, layout: DocumentLayout, of_row: List[np.ndarray]) -> Tuple[Ragged, List[np.ndarray]]:
        """Returns rows of tokens, and the sequences that each row addresses."""
        if self.scope == "own":
            return layout.tokens, of_row
        if self.scope == "document":
            parts = [of_row[start:end] for start, end in pairwise(layout.sentences.offsets)]
            return layout.document_tokens, [np.unique(np.concatenate(part)) for part in parts]
        return Ragged(np.array([layout.tokens.total]), layout.device), [np.unique(np.concatenate(of_row))]


def _block(sets: Ragged, set_members: np.ndarray, sequences: Ragged, group: np.ndarray) -> AddressBlock:
    """Returns some sets, padded together."""
    place, absent = sets.block(group)
    members = set_members[place]  # [b, J]
    length = sequences.lengths[members][..., None]
    column = np.arange(int(length.max()))
    tokens = sequences.offsets[members][..., None] + np.minimum(column, length - 1)
    return AddressBlock(*(sets.index(array) for array in (members, absent, tokens, column >= length)))


def _join(tokens: Ragged, contexts: ContextRows) -> Tuple[np.ndarray, Ragged]:
    """Returns items and rows of c = {c_1, break, c_2, break, …, c_m}, a row per sentence with context ([M] eq. 18)."""
    lengths = tokens.lengths[contexts.sentences] + 1  # each followed by a break
    ends = np.cumsum(lengths) - 1
    items = np.full(int(lengths.sum()), tokens.total)
    is_token = np.ones(len(items), dtype=bool)
    is_token[ends] = False
    items[is_token] = tokens.items_of(contexts.sentences)
    row_lengths = np.add.reduceat(lengths, contexts.first[contexts.rows]) if len(lengths) else lengths
    kept = np.ones(len(items), dtype=bool)
    kept[np.cumsum(row_lengths) - 1] = False  # no break after the last sentence
    return items[kept], Ragged(row_lengths - 1, tokens.device)

"""Which context sequences a batch has, and which words address which ([M] sec. 4.3)."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.buckets import attention_groups
from docnmt_fairseq.layout import AttentionPlan, DocumentLayout, Ragged
from docnmt_fairseq.modules.context_selection import ContextSentences, items_of
from docnmt_fairseq.ragged import Slots


@dataclass(frozen=True)
class AddressBlock:
    """Sets of words, padded together, each with the sequences that it addresses.

    Attributes:
        sequences: [b, J] the sequences; what is too much repeats the last.
        absent: [b, J] True where a sequence is too much.
        words: [b, J, L] items of the sequences; padding repeats the last.
        padding: [b, J, L] True at padding.
    """

    sequences: Tensor
    absent: Tensor
    words: Tensor
    padding: Tensor


class MemoryPlan:
    """The memory of every word.

    Args:
        layout: the batch.
        contexts: of every sentence.
        joined: whether a sentence's context sentences are one sequence, with breaks in between; else each is one.
        scope: of ``MEMORY_SCOPES``: a word addresses the sequences of its own sentence, or those of all sentences of
            its document, or of the batch.

    Attributes:
        sequences: the sequences, packed.
        items: [their items] which word each is, N: the break; None: the sequences are all sentences as they stand.
        sets: of sequences, those that the same words address.
        queries: the words that address each set, in the order of the blocks.
    """

    def __init__(self, layout: DocumentLayout, contexts: ContextSentences, joined: bool, scope: str):
        self.device = layout.device
        self.words = layout.words
        self.items: Optional[Tensor] = None
        self.sequences = layout.words
        of_row = np.split(contexts.sentences, contexts.first[1:])
        if joined:
            self.items, self.sequences = _join(layout.words, contexts)
            number = np.cumsum(contexts.counts > 0) - 1
            of_row = [number[row : row + 1] if count else number[:0] for row, count in enumerate(contexts.counts)]
        words, sets = self._addressed(layout, of_row, scope)
        kept = np.array([number for number, sequences in enumerate(sets) if len(sequences)], dtype=np.int64)
        self.sets = Ragged(np.array([len(sets[number]) for number in kept], dtype=np.int64), layout.device)
        self.set_sequences = np.concatenate([np.zeros(0, dtype=np.int64), *(sets[number] for number in kept)])
        keys = np.array([self.sequences.lengths[sets[number]].sum() for number in kept], dtype=np.int64)
        groups = attention_groups(words.lengths[kept], keys) if len(kept) else []
        self.queries = Slots(words, [kept[group] for group in groups])
        self.set_of_query = torch.as_tensor(np.repeat(np.arange(len(kept)), words.lengths[kept]), device=layout.device)
        self.blocks = [self._block(group) for group in groups]

    @staticmethod
    def _addressed(layout: DocumentLayout, of_row: List[np.ndarray], scope: str) -> Tuple[Ragged, List[np.ndarray]]:
        """Returns rows of words, and the sequences that each row addresses."""
        if scope == "own":
            return layout.words, of_row
        if scope == "document":
            parts = [of_row[start:end] for start, end in pairwise(layout.sentences.offsets)]
            return layout.document_words, [np.unique(np.concatenate(part)) for part in parts]
        return Ragged(np.array([layout.words.total]), layout.device), [np.unique(np.concatenate(of_row))]

    def _block(self, sets: np.ndarray) -> AddressBlock:
        place, absent = self.sets.block_arrays(sets)
        sequences = self.set_sequences[place]  # [b, J]
        length = self.sequences.lengths[sequences][..., None]
        column = np.arange(int(length.max()))
        words = self.sequences.offsets[sequences][..., None] + np.minimum(column, length - 1)
        arrays = (sequences, absent, words, column >= length)
        return AddressBlock(*(torch.as_tensor(array, device=self.device) for array in arrays))

    @cached_property
    def within_sequences(self) -> AttentionPlan:
        """Returns the plan of a sequence's items attending to one another."""
        return AttentionPlan(self.sequences, self.sequences)

    @cached_property
    def reached(self) -> Tensor:
        """Returns which words have a memory, [N]."""
        return torch.zeros(self.words.total, dtype=torch.bool, device=self.device).index_fill(0, self.queries.items, 1)

    @property
    def set_members(self) -> Tensor:
        """Returns the sequences of every set, one set after another."""
        return torch.as_tensor(self.set_sequences, device=self.device)

    def scatter(self, results: Tensor) -> Tensor:
        """Returns [N, d] from the results of the words that have a memory; zero elsewhere."""
        return results.new_zeros(self.words.total, results.size(1)).index_copy(0, self.queries.items, results)


def _join(words: Ragged, contexts: ContextSentences) -> Tuple[Tensor, Ragged]:
    """Returns items and rows of c = {c_1, break, c_2, break, …, c_m}, a row for each that has context ([M] eq. 18)."""
    lengths = words.lengths[contexts.sentences] + 1  # each with a break behind it
    ends = np.cumsum(lengths) - 1
    items = np.full(int(lengths.sum()), words.total)
    is_word = np.ones(len(items), dtype=bool)
    is_word[ends] = False
    items[is_word] = items_of(words, contexts.sentences)
    row_lengths = np.add.reduceat(lengths, contexts.first[contexts.rows]) if len(lengths) else lengths
    kept = np.ones(len(items), dtype=bool)
    kept[np.cumsum(row_lengths) - 1] = False  # no break behind the last
    return torch.as_tensor(items[kept], device=words.device), Ragged(row_lengths - 1, words.device)

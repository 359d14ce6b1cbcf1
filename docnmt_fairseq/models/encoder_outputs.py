"""Encoder outputs: the states of all sources, shared by the hypotheses of a sentence during decoding."""

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Hashable, List, Optional, Tuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.multisource.packed import SourceStates

EncoderOut = Dict[str, List[Any]]  # fairseq's dictionary, with an EncoderOutputs under this key:
ENCODER_OUTPUTS = "encoder_outputs"
T = TypeVar("T")


@dataclass(frozen=True)
class PreviousTargets:
    """Translations of the previous sentences of each document, for target-side context.

    Attributes:
        projected: [S, J, L, w] of the J previous sentences, see ``TargetContextMechanism.look_back``.
        padding: [S, J, L] True at padding.
    """

    projected: Tensor
    padding: Tensor

    @classmethod
    def of_sentences(cls, previous: List[List[Tensor]]) -> "PreviousTargets":
        """Pads the projections [m_t, w] of the sentences before each sentence; at least one sentence has some."""
        most = max(map(len, previous))
        absent = next(before[0] for before in previous if before)[:0]
        every = [sentence for before in previous for sentence in [*before, *[absent] * (most - len(before))]]
        projected = pad_sequence(every, batch_first=True).unflatten(0, (-1, most))
        lengths = torch.tensor([len(sentence) for sentence in every], device=absent.device).view(-1, most, 1)
        return cls(projected, torch.arange(projected.size(2), device=absent.device) >= lengths)

    def of(self, sentences: Tensor) -> "PreviousTargets":
        """Selects some of the sentences."""
        return PreviousTargets(*(part.index_select(0, sentences) for part in (self.projected, self.padding)))


@dataclass(frozen=True)
class EncoderOutputs:
    """Packed states of all sources and, during decoding, the remaining sentences and their hypotheses.

    Computations of the decoder that depend on the sources alone are cached (:meth:`per_sentence`, :meth:`per_batch`)
    and shared by all hypotheses of a sentence; nothing is copied unless a sentence finishes.

    Attributes:
        states: [N, d] packed final states of the encoder, of all rows of the batch.
        layout: the batch.
        by_source: states of every source of the decoded sentences, the main one first.
        taken: [S] selected decoded sentences of the batch; None: all.
        sentences: [S'] remaining sentences among the selected; None: all.
        row_sentence: [B] sentence of each hypothesis; None: one hypothesis per sentence.
        previous: previous translations of the remaining sentences.
    """

    states: Tensor
    layout: DocumentLayout
    by_source: List[SourceStates]
    taken: Optional[np.ndarray] = None
    sentences: Optional[Tensor] = None
    row_sentence: Optional[Tensor] = None
    previous: Optional[PreviousTargets] = None
    _of_batch: Dict[Hashable, Any] = field(default_factory=dict)  # cache shared by all derived objects
    _once: Dict[nn.Module, List[Tensor]] = field(default_factory=dict)  # cache for the selected sentences
    _left: Dict[nn.Module, List[Tensor]] = field(default_factory=dict)  # cache for the remaining sentences

    @classmethod
    def of(cls, encoder_out: EncoderOut) -> "EncoderOutputs":
        """Extracts the object from fairseq's dictionary."""
        return encoder_out[ENCODER_OUTPUTS][0]

    @property
    def left(self) -> int:
        """Number of remaining sentences."""
        if self.sentences is not None:
            return len(self.sentences)
        return self.layout.decoded_tokens.rows if self.taken is None else len(self.taken)

    def taking(self, sentences: np.ndarray) -> "EncoderOutputs":
        """Selects decoded sentences of the batch by number, [S]."""
        return replace(self, taken=sentences, sentences=None, row_sentence=None, previous=None, _once={}, _left={})

    @property
    def all_states(self) -> List[Tensor]:
        """States [M_k, d_k] of every source."""
        return [source.states for source in self.by_source]

    def per_batch(self, owner: Hashable, make: Callable[[], T]) -> T:
        """Result of ``make``, cached per batch and owner."""
        if owner not in self._of_batch:
            self._of_batch[owner] = make()
        cached: T = self._of_batch[owner]
        return cached

    def per_sentence(self, owner: nn.Module, make: Callable[[], List[Tensor]]) -> List[Tensor]:
        """Result of ``make``, [S, ...] each, cached per owner and restricted to the remaining sentences [S', ...]."""
        if owner not in self._once:
            self._once[owner] = make()
        if self.sentences is None:
            return self._once[owner]
        if owner not in self._left:
            self._left[owner] = [part.index_select(0, self.sentences) for part in self._once[owner]]
        return self._left[owner]

    def row_document(self) -> Tensor:
        """Document of every hypothesis, [B]."""
        documents = self.per_batch("documents", lambda: self.layout.index(self.layout.decoded_document))
        taken = None if self.taken is None else self.layout.index(self.taken)
        for index in (taken, self.sentences, self.row_sentence):
            documents = documents if index is None else documents.index_select(0, index)
        return documents

    def reordered(self, new_order: Tensor) -> Tuple["EncoderOutputs", Tensor, bool]:
        """Outputs for the rows ``new_order`` [B], the remaining sentences, and whether some have finished.

        Beam search keeps the same number of rows per sentence; in any other order, every row is its own sentence.
        """
        everyone = torch.arange(self.left, device=new_order.device)
        before = everyone if self.row_sentence is None else self.row_sentence
        rows = before.index_select(0, new_order)
        kept, hypotheses = torch.unique_consecutive(rows, return_counts=True)
        if not hypotheses.eq(hypotheses[:1]).all():  # not an order of beam search
            kept, hypotheses = rows, torch.ones_like(rows)
        row_sentence = torch.arange(len(kept), device=rows.device).repeat_interleave(hypotheses)
        if torch.equal(kept, everyone):
            return replace(self, row_sentence=row_sentence), kept, False
        sentences = kept if self.sentences is None else self.sentences.index_select(0, kept)
        previous = None if self.previous is None else self.previous.of(kept)
        left = replace(self, sentences=sentences, row_sentence=row_sentence, previous=previous, _left={})
        return left, kept, True

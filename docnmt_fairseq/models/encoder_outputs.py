"""What a decoder may look at of a batch: :class:`EncoderOutputs`, made by an encoder."""

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.multisource.source_states import SourceStates

EncoderOut = Dict[str, List[Any]]  # fairseq's; ours holds a EncoderOutputs under this name
ENCODER_OUTPUTS = "encoder_outputs"
SENTINEL = "sentinel"  # the name of what attention is given that goes to no source
T = TypeVar("T")


@dataclass(frozen=True)
class DocumentOfRows(PlanKey[Tensor]):
    """The document of every decoded row, [S]."""

    def make(self, layout: DocumentLayout) -> Tensor:
        """See :class:`PlanKey`."""
        return layout.index(layout.decoded_document)


@dataclass(frozen=True)
class PreviousTargets:
    """What stands before the sentences of a search in their documents' translations.

    Attributes:
        projected: [S, J, L, w] of the J sentences before each, see ``TargetContextMechanism.look_back``.
        padding: [S, J, L] True at padding.
    """

    projected: Tensor
    padding: Tensor

    @classmethod
    def of_sentences(cls, previous: List[List[Tensor]]) -> "PreviousTargets":
        """Those of sentences, each with the [m_t, w] of the target sentences before it; at least one has some."""
        most = max(map(len, previous))
        absent = next(before[0] for before in previous if before)[:0]
        every = [sentence for before in previous for sentence in [*before, *[absent] * (most - len(before))]]
        projected = pad_sequence(every, batch_first=True).unflatten(0, (-1, most))
        lengths = torch.tensor([len(sentence) for sentence in every], device=absent.device).view(-1, most, 1)
        return cls(projected, torch.arange(projected.size(2), device=absent.device) >= lengths)

    def of(self, sentences: Tensor) -> "PreviousTargets":
        """Those of some of the sentences."""
        return PreviousTargets(*(part.index_select(0, sentences) for part in (self.projected, self.padding)))


@dataclass(frozen=True)
class EncoderOutputs:
    """The states of all sources, packed, and in a search the sentences and hypotheses that are left.

    What a part of the decoder computes of the sources alone it computes once (:meth:`per_sentence`, :meth:`per_batch`),
    also for all rounds of a search: the hypotheses of a sentence share it, and nothing moves unless a sentence
    finishes.

    Attributes:
        states: [N, d] packed final states of the encoder, of all rows of the batch.
        layout: the batch.
        by_source: the states of every source that decoded sentences see, the main one first.
        taken: [S] which of the batch's decoded sentences these are; None: all.
        sentences: [S'] which of them are left; None: all.
        row_sentence: [B] which of these each hypothesis is of; None: each has one.
        previous: what stands before the sentences that are left.
    """

    states: Tensor
    layout: DocumentLayout
    by_source: List[SourceStates]
    taken: Optional[np.ndarray] = None
    sentences: Optional[Tensor] = None
    row_sentence: Optional[Tensor] = None
    previous: Optional[PreviousTargets] = None
    _of_batch: Dict[nn.Module, Any] = field(default_factory=dict)  # shared by all that are made of these sources
    _once: Dict[nn.Module, List[Tensor]] = field(default_factory=dict)  # shared by those of the same sentences
    _left: Dict[nn.Module, List[Tensor]] = field(default_factory=dict)  # of the sentences that are left

    @classmethod
    def of(cls, encoder_out: EncoderOut) -> "EncoderOutputs":
        """Those of an encoder's output."""
        return encoder_out[ENCODER_OUTPUTS][0]

    @property
    def left(self) -> int:
        """How many sentences are left."""
        if self.sentences is not None:
            return len(self.sentences)
        return self.layout.decoded_tokens.rows if self.taken is None else len(self.taken)

    def taking(self, sentences: np.ndarray) -> "EncoderOutputs":
        """The sources of some of the batch's decoded sentences [S], by their numbers."""
        return replace(self, taken=sentences, sentences=None, row_sentence=None, previous=None, _once={}, _left={})

    def padded(self) -> Tuple[Tensor, Tensor]:
        """The main source's states [S, n, d] and their padding [S, n], of all sentences that are taken."""
        return self.by_source[0].padded(self.layout, self.taken)

    def all_states(self, names: Sequence[str]) -> List[Tensor]:
        """The states of every source, [M_k, d_k] each.

        Args:
            names: of the sources that the decoder was made for, the main one first, and perhaps a sentinel.

        Raises:
            InputError: the encoder gives fewer sources than the decoder was made for.
        """
        extra = [name for name in names[1:] if name != SENTINEL]
        if len(self.by_source) != 1 + len(extra):
            raise InputError(
                f"--extra-sources {','.join(extra)}: the batch has {len(self.by_source) - 1} of {len(extra)}"
            )
        return [source.states for source in self.by_source]

    def per_batch(self, owner: nn.Module, make: Callable[[], T]) -> T:
        """What ``owner`` computes once a batch."""
        if owner not in self._of_batch:
            self._of_batch[owner] = make()
        found: T = self._of_batch[owner]
        return found

    def per_sentence(self, owner: nn.Module, make: Callable[[], List[Tensor]]) -> List[Tensor]:
        """What ``owner`` computes once of every sentence, [S, ...] each; here [S', ...] of those left."""
        if owner not in self._once:
            self._once[owner] = make()
        if self.sentences is None:
            return self._once[owner]
        if owner not in self._left:
            self._left[owner] = [part.index_select(0, self.sentences) for part in self._once[owner]]
        return self._left[owner]

    def row_document(self) -> Tensor:
        """The document of every hypothesis, [B]."""
        documents = self.layout.plan(DocumentOfRows())
        taken = None if self.taken is None else self.layout.index(self.taken)
        for index in (taken, self.sentences, self.row_sentence):
            documents = documents if index is None else documents.index_select(0, index)
        return documents

    def reordered(self, new_order: Tensor) -> Tuple["EncoderOutputs", Tensor, bool]:
        """The sources for the rows ``new_order`` [B], which of the sentences are left, and whether some are not.

        Every sentence has as many rows; in an order where they have not, every row is a sentence of its own.
        """
        everyone = torch.arange(self.left, device=new_order.device)
        before = everyone if self.row_sentence is None else self.row_sentence
        kept, row_sentence = sentences_of_hypotheses(before, new_order)
        if torch.equal(kept, everyone):
            return replace(self, row_sentence=row_sentence), kept, False
        sentences = kept if self.sentences is None else self.sentences.index_select(0, kept)
        previous = None if self.previous is None else self.previous.of(kept)
        left = replace(self, sentences=sentences, row_sentence=row_sentence, previous=previous, _left={})
        return left, kept, True


def sentences_of_hypotheses(row_sentence: Tensor, new_order: Tensor) -> Tuple[Tensor, Tensor]:
    """The sentences that are left [S'], and which of these each of the rows ``new_order`` is of, [B].

    Args:
        row_sentence: [·] the sentence of each row before.
        new_order: [B] rows.
    """
    rows = row_sentence.index_select(0, new_order)
    kept, hypotheses = torch.unique_consecutive(rows, return_counts=True)
    if not hypotheses.eq(hypotheses[:1]).all():  # not an order of a search
        kept, hypotheses = rows, torch.ones_like(rows)
    return kept, torch.arange(len(kept), device=rows.device).repeat_interleave(hypotheses)

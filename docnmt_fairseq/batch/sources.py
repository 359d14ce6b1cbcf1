"""Which states of each source a decoded sentence sees: the sentence itself, its neighbours, lines of other texts."""

from dataclasses import dataclass, field
from typing import Any, Optional, Tuple, TypeVar

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.neighbours import Neighbours
from docnmt_fairseq.batch.ragged import Ragged

P = TypeVar("P")


@dataclass(frozen=True)
class SourceRows:
    """The states of one source that each decoded sentence sees.

    A sentence may see no state at all (the first one of a document has no previous sentences), and several sentences
    may see the same states (those of a sentence that is the context of both).

    Attributes:
        lengths: [S] how many states each decoded sentence sees, 0: none.
        items: [their sum] the numbers of these states, those of sentence 0 first; None: all states in order.
    """

    lengths: np.ndarray
    items: Optional[np.ndarray] = None

    def block(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The states [b, n] of some sentences padded together, n at least 1, and the padding [b, n], True there.

        What stands at padding is the number of some state, or 0; it must be masked by whoever attends.
        """
        lengths = self.lengths[rows]
        column = np.arange(max(1, int(lengths.max(initial=0))))
        padding = column >= lengths[:, None]
        offsets = (np.cumsum(self.lengths) - self.lengths)[rows]
        index = np.where(padding, 0, offsets[:, None] + column)
        if self.items is not None and len(self.items):
            index = np.where(padding, 0, self.items[index])
        return index, padding


SourceKey = PlanKey[SourceRows]


@dataclass(frozen=True)
class TargetsAndSources(PlanKey[P]):
    """What plans of target tokens and all their sources have in common; ``sources`` says which states these are."""

    sources: Tuple[SourceKey, ...]
    of_targets = True

    @property
    def of_extra_sources(self) -> bool:  # type: ignore[override]
        """See :class:`PlanKey`."""
        return any(source.of_extra_sources for source in self.sources)


@dataclass(frozen=True)
class OfSentence(SourceKey):
    """The main source: a decoded sentence sees its own tokens."""

    def make(self, layout: DocumentLayout) -> SourceRows:
        """See :class:`PlanKey`."""
        return SourceRows(layout.decoded_tokens.lengths)


@dataclass(frozen=True)
class OfExtraSource(SourceKey):
    """A source beside the document: a decoded sentence sees what its line holds.

    Attributes:
        number: which of the layout's ``extra_lengths``.
    """

    number: int
    of_extra_sources = True

    def make(self, layout: DocumentLayout) -> SourceRows:
        """See :class:`PlanKey`."""
        return SourceRows(layout.extra_lengths_of(self.number))


@dataclass(frozen=True)
class OfNeighbours(SourceKey):
    """A decoded sentence sees its context sentences, as they are encoded with all others."""

    neighbours: Neighbours

    def make(self, layout: DocumentLayout) -> SourceRows:
        """See :class:`PlanKey`."""
        sentences, lengths = _context_of_decoded(layout, self.neighbours)
        return SourceRows(lengths, layout.tokens.items_of(sentences))


@dataclass(frozen=True)
class EncodedApart:
    """Sentences that are encoded once more, each by itself.

    Attributes:
        tokens: [M] which tokens of the batch theirs are.
        layout: of the sentences, each a document of its own.
    """

    tokens: Tensor
    layout: DocumentLayout


@dataclass(frozen=True)
class NeighboursApart(PlanKey[Optional[EncodedApart]]):
    """The sentences that are some decoded sentence's context, to be encoded apart; None where there are none.

    Attributes:
        neighbours: which sentences a sentence has as context.
        inner: the plans that whoever encodes them will ask their layout for.
    """

    neighbours: Neighbours
    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)

    def make(self, layout: DocumentLayout) -> Optional[EncodedApart]:
        """See :class:`PlanKey`."""
        needed = np.unique(_context_of_decoded(layout, self.neighbours)[0])
        if not len(needed):
            return None
        alone = DocumentLayout.of_single_sentences(layout.tokens.lengths[needed], device=layout.device)
        return EncodedApart(layout.index(layout.tokens.items_of(needed)), alone.with_plans(self.inner))


@dataclass(frozen=True)
class OfNeighboursApart(SourceKey):
    """A decoded sentence sees its context sentences, encoded as :class:`NeighboursApart` says."""

    neighbours: Neighbours

    def make(self, layout: DocumentLayout) -> SourceRows:
        """See :class:`PlanKey`."""
        sentences, lengths = _context_of_decoded(layout, self.neighbours)
        needed, number = np.unique(sentences, return_inverse=True)
        if not len(needed):
            return SourceRows(lengths, np.zeros(0, dtype=np.int64))
        return SourceRows(lengths, Ragged(layout.tokens.lengths[needed]).items_of(number))


@dataclass(frozen=True)
class ExtraSourceApart(PlanKey[Optional[DocumentLayout]]):
    """The layout of one extra text, each line a document of its own; None where all are empty.

    Attributes:
        number: which of the layout's ``extra_lengths``.
        inner: the plans that whoever encodes them will ask that layout for.
    """

    number: int
    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)
    of_extra_sources = True

    def make(self, layout: DocumentLayout) -> Optional[DocumentLayout]:
        """See :class:`PlanKey`."""
        lengths = layout.extra_lengths_of(self.number)
        if not lengths.any():
            return None
        return DocumentLayout.of_single_sentences(lengths, device=layout.device).with_plans(self.inner)


@dataclass(frozen=True)
class PaddedRows:
    """The states of one source that each decoded sentence sees, padded together.

    Attributes:
        index: [S, n] the states' numbers.
        padding: [S, n] True at padding.
    """

    index: Tensor
    padding: Tensor


@dataclass(frozen=True)
class Padded(PlanKey[PaddedRows]):
    """The states of a source for a search; ``source`` says which."""

    source: SourceKey

    @property
    def of_extra_sources(self) -> bool:  # type: ignore[override]
        """See :class:`PlanKey`."""
        return self.source.of_extra_sources

    def make(self, layout: DocumentLayout) -> PaddedRows:
        """See :class:`PlanKey`."""
        rows = layout.plan(self.source)
        return PaddedRows(*map(layout.index, rows.block(np.arange(len(rows.lengths)))))


def _context_of_decoded(layout: DocumentLayout, neighbours: Neighbours) -> Tuple[np.ndarray, np.ndarray]:
    """The context sentences of all decoded rows, one row after another, and how many tokens each row's have, [S]."""
    contexts = layout.plan(neighbours)
    rows = np.arange(layout.tokens.rows) if layout.decoded is None else layout.decoded
    counts = contexts.counts[rows]
    first, before = np.repeat(contexts.first[rows], counts), np.repeat(np.cumsum(counts) - counts, counts)
    sentences = contexts.sentences[first + np.arange(int(counts.sum())) - before]
    of_row = np.repeat(np.arange(len(rows)), counts)
    lengths = np.bincount(of_row, layout.tokens.lengths[sentences], minlength=len(rows))
    return sentences, lengths.astype(np.int64)

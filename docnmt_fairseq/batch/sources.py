"""Source states that each decoded sentence attends to: its own, those of context sentences, and of extra sources."""

from dataclasses import dataclass, field
from typing import Any, Optional, Tuple, TypeVar

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.context_sentences import ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged, ranges

P = TypeVar("P")


@dataclass(frozen=True)
class SourceRows:
    """States of one source for each decoded sentence.

    A sentence may have no states (the first one of a document has no previous sentences), and sentences may share
    states (those of a common context sentence).
    """

    lengths: np.ndarray  # [S] number of states of each decoded sentence, perhaps 0
    # [their sum] indices of these states, those of sentence 0 first; None: all states in order
    items: Optional[np.ndarray] = None

    def block(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the states [b, n] of some sentences padded together, n at least 1, and the padding mask [b, n].

        At padding the index is that of some state, or 0; attention must mask it.
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
    """Base class of plans between target tokens and all their ``sources``."""

    sources: Tuple[SourceKey, ...]
    of_targets = True

    @property
    def of_extra_sources(self) -> bool:  # type: ignore[override]
        return any(source.of_extra_sources for source in self.sources)


@dataclass(frozen=True)
class OfSentence(SourceKey):
    """The main source: a decoded sentence attends to its own tokens."""

    def make(self, layout: DocumentLayout) -> SourceRows:
        return SourceRows(layout.decoded_tokens.lengths)


@dataclass(frozen=True)
class OfExtraSource(SourceKey):
    """An extra source: a decoded sentence attends to the corresponding line."""

    number: int  # index in the layout's ``extra_lengths``
    of_extra_sources = True

    def make(self, layout: DocumentLayout) -> SourceRows:
        return SourceRows(layout.extra_lengths_of(self.number))


@dataclass(frozen=True)
class OfContextSentences(SourceKey):
    """A decoded sentence attends to its context sentences, as encoded with the document."""

    context: ContextSentences

    def make(self, layout: DocumentLayout) -> SourceRows:
        sentences, lengths = _context_of_decoded(layout, self.context)
        return SourceRows(lengths, layout.tokens.items_of(sentences))


@dataclass(frozen=True)
class SeparateSentences:
    """Sentences that are encoded once more, without context."""

    tokens: Tensor  # [M] indices of their tokens in the batch
    layout: DocumentLayout  # layout of the sentences, each a document of its own


@dataclass(frozen=True)
class SeparateContext(PlanKey[Optional[SeparateSentences]]):
    """Context sentences of decoded sentences, to be encoded separately; None without any."""

    context: ContextSentences
    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)  # plans made for their layout in advance

    def make(self, layout: DocumentLayout) -> Optional[SeparateSentences]:
        needed = np.unique(_context_of_decoded(layout, self.context)[0])
        if not len(needed):
            return None
        alone = DocumentLayout.of_single_sentences(layout.tokens.lengths[needed], device=layout.device)
        return SeparateSentences(layout.index(layout.tokens.items_of(needed)), alone.with_plans(self.inner))


@dataclass(frozen=True)
class OfSeparateContext(SourceKey):
    """A decoded sentence attends to its context sentences, encoded as in :class:`SeparateContext`."""

    context: ContextSentences

    def make(self, layout: DocumentLayout) -> SourceRows:
        sentences, lengths = _context_of_decoded(layout, self.context)
        needed, number = np.unique(sentences, return_inverse=True)
        if not len(needed):
            return SourceRows(lengths, np.zeros(0, dtype=np.int64))
        return SourceRows(lengths, Ragged(layout.tokens.lengths[needed]).items_of(number))


@dataclass(frozen=True)
class SeparateExtraSource(PlanKey[Optional[DocumentLayout]]):
    """Layout of one extra text, each line a document of its own; None if all are empty."""

    number: int  # index in the layout's ``extra_lengths``
    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)  # plans made for that layout in advance
    of_extra_sources = True

    def make(self, layout: DocumentLayout) -> Optional[DocumentLayout]:
        lengths = layout.extra_lengths_of(self.number)
        if not lengths.any():
            return None
        return DocumentLayout.of_single_sentences(lengths, device=layout.device).with_plans(self.inner)


@dataclass(frozen=True)
class PaddedRows:
    """States of one source for each decoded sentence, padded."""

    index: Tensor  # [S, n] indices of the states
    padding: Tensor  # [S, n] True at padding


@dataclass(frozen=True)
class Padded(PlanKey[PaddedRows]):
    """The states of ``source`` for a search."""

    source: SourceKey

    @property
    def of_extra_sources(self) -> bool:  # type: ignore[override]
        return self.source.of_extra_sources

    def make(self, layout: DocumentLayout) -> PaddedRows:
        rows = layout.plan(self.source)
        return PaddedRows(*map(layout.index, rows.block(np.arange(len(rows.lengths)))))


def _context_of_decoded(layout: DocumentLayout, context: ContextSentences) -> Tuple[np.ndarray, np.ndarray]:
    """Returns the context sentences of all decoded rows, in order, and the number of their tokens per row, [S]."""
    contexts = layout.plan(context)
    rows = np.arange(layout.tokens.rows) if layout.decoded is None else layout.decoded
    counts = contexts.counts[rows]
    sentences = contexts.sentences[ranges(contexts.first[rows], counts)]
    of_row = np.repeat(np.arange(len(rows)), counts)
    lengths = np.bincount(of_row, layout.tokens.lengths[sentences], minlength=len(rows))
    return sentences, lengths.astype(np.int64)

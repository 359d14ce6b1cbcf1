"""Structure of a batch of documents: :class:`DocumentLayout` assigns tokens to sentences, paragraphs and documents.

Token states stay *packed*, [tokens, d] without padding, in document order. They are padded only inside attention, where
rows of similar length are grouped (:class:`~docnmt_fairseq.batch.ragged.AttentionPlan`).

Structures that depend on the batch alone, such as which tokens attend to which, are *plans*. A :class:`PlanKey` names a
plan and makes it; :meth:`DocumentLayout.plan` makes it once per batch. A model lists the plans that it needs, the data
loader's workers make them and gather them in one buffer (:meth:`DocumentLayout.gathered`), which is moved to the device
in one asynchronous copy (:meth:`DocumentLayout.to`).

Symbols: R sentences (rows) in D documents, N tokens in all; a context-only sentence is a row, too.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Dict, Generic, Iterable, Optional, Tuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged, computed_on, index_tensor
from docnmt_fairseq.batch.transfer import gathered, pinned, to_device

P = TypeVar("P")
_ORIGIN = "_origin"  # the layout that a moved one was copied from; not a field, so that it is not moved itself


class PlanKey(ABC, Generic[P]):
    """Contract of plan keys: a frozen dataclass; equal keys name the same plan.

    Class attributes:
        of_targets: whether the plan depends on the lengths of target sentences.
        of_extra_sources: whether it depends on the lengths of extra sources.
    """

    of_targets = False
    of_extra_sources = False

    def asked_of(self, layout: "DocumentLayout") -> bool:
        """Returns whether a model that lists the plan needs it for this batch."""
        return layout.targets is not None or not self.of_targets

    @abstractmethod
    def make(self, layout: "DocumentLayout") -> P:
        """Makes the plan of a batch: a dataclass of arrays, and of tensors on the layout's device."""


@dataclass(frozen=True, eq=False)
class DocumentLayout:
    """Structure of one batch, immutable. Rows are in document order.

    Attributes:
        tokens: tokens in sentences.
        sentences: sentences in documents.
        document_tokens: tokens in documents.
        sentence_position: [R] index of the sentence in its document, from 0.
        unit_position: [levels, R] index in the document, from 0, of the sentence's paragraph, section, …, for as many
            levels as the corpus has.
        last_sentence, last_unit: the highest of these indices, of units per level.
        decoded_tokens: tokens in the sentences that are translated; the others are context only.
        decoded: [S] rows of these; None: all.
        targets: target tokens of each decoded sentence; None without targets.
        context_tokens: [tokens of the context-only rows] token ids, in row order.
        extra_lengths: [S] number of items of each decoded sentence, for every extra source; None without extra sources.
        similar: [R, K] distance in rows to the most similar previous sentences, most similar first, 0: none; sentences
            of other documents are ignored. None if unknown.
        epoch: epoch of the training, from 1; 0 outside training.
        drawn: [R, K] rows drawn from the training set for each row, -1: none; None without any.
        target_document: [S] document whose previous targets each decoded row sees; None: that of its source.
    """

    tokens: Ragged
    sentences: Ragged
    document_tokens: Ragged
    sentence_position: Tensor
    unit_position: Tensor
    last_sentence: int
    last_unit: Tuple[int, ...]
    decoded_tokens: Ragged
    decoded: Optional[np.ndarray] = None
    targets: Optional[Ragged] = None
    context_tokens: Optional[Tensor] = None
    extra_lengths: Optional[Tuple[np.ndarray, ...]] = None
    similar: Optional[np.ndarray] = None
    epoch: int = 0
    drawn: Optional[np.ndarray] = None
    target_document: Optional[np.ndarray] = None
    _plans: Dict[PlanKey[Any], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        source_lengths: np.ndarray,
        document_lengths: np.ndarray,
        sentence_position: np.ndarray,
        unit_position: np.ndarray,
        target_lengths: Optional[np.ndarray] = None,
        decoded: Optional[np.ndarray] = None,
        device: torch.device = torch.device("cpu"),
        **others: Any,
    ) -> "DocumentLayout":
        """Creates the layout of a batch.

        Args:
            source_lengths: [R] tokens of each sentence, end of sentence included.
            document_lengths: [D] sentences of each document (or piece of one).
            sentence_position: see above.
            unit_position: see above, or [R] for paragraphs only.
            target_lengths: [S] target tokens of each decoded sentence; None without targets.
            decoded: see above.
            device: device of the tensors.
            others: other attributes, see above.
        """
        units = np.atleast_2d(unit_position)
        tokens, sentences = Ragged(source_lengths, device), Ragged(document_lengths, device)
        assert sentences.total == tokens.rows, "documents and sentences do not add up"
        return cls(
            tokens=tokens,
            sentences=sentences,
            document_tokens=Ragged(np.add.reduceat(tokens.lengths, sentences.offsets[:-1]), device),
            sentence_position=index_tensor(np.asarray(sentence_position), device),
            unit_position=index_tensor(units, device),
            last_sentence=int(np.max(sentence_position, initial=0)),
            last_unit=tuple(units.max(axis=1, initial=0).tolist()),
            decoded_tokens=tokens if decoded is None else Ragged(tokens.lengths[decoded], device),
            decoded=decoded,
            targets=None if target_lengths is None else Ragged(target_lengths, device),
            **others,
        )

    @classmethod
    def of_single_sentences(
        cls,
        source_lengths: np.ndarray,
        target_lengths: Optional[np.ndarray] = None,
        device: torch.device = torch.device("cpu"),
    ) -> "DocumentLayout":
        """Creates the layout of sentences without context: every sentence is a document of its own."""
        one, zero = np.ones(len(source_lengths), dtype=np.int64), np.zeros(len(source_lengths), dtype=np.int64)
        return cls.of(source_lengths, one, zero, zero, target_lengths, device=device)

    @property
    def device(self) -> torch.device:
        """Device of all index tensors."""
        return self.sentence_position.device

    def to(self, device: torch.device) -> "DocumentLayout":
        """Returns the layout with its tensors and those of its plans on ``device``, moved in one copy."""
        if torch.device(device) == self.device:
            return self
        moved = to_device(self, torch.device(device))
        object.__setattr__(moved, _ORIGIN, self)
        return moved

    def gathered(self) -> "DocumentLayout":
        """Returns the layout with its tensors and those of its plans in one buffer, ready to be moved."""
        return gathered(self)

    def pin_memory(self) -> "DocumentLayout":
        """Returns the layout in page-locked memory; data loaders call this if there is a GPU."""
        return pinned(self)

    def plan(self, key: PlanKey[P]) -> P:
        """Returns the plan of a key; it is made at first use and shared by all layers.

        If the layout was moved from another device, the plan is made there and moved in one copy.
        """
        if key not in self._plans:
            origin: Optional[DocumentLayout] = self.__dict__.get(_ORIGIN)
            with computed_on(self.device):
                self._plans[key] = key.make(self) if origin is None else to_device(origin.plan(key), self.device)
        return self._plans[key]

    def with_plans(self, keys: Iterable[PlanKey[Any]], device: Optional[torch.device] = None) -> "DocumentLayout":
        """Makes plans that will be needed on ``device`` (None: the layout's device); returns the layout."""
        with computed_on(device or self.device):
            for key in keys:
                if key.asked_of(self):
                    self.plan(key)
        return self

    def without_context(self) -> "DocumentLayout":
        """Returns the layout of the decoded sentences without their context."""
        targets = None if self.targets is None else self.targets.lengths
        alone = self.of_single_sentences(self.decoded_tokens.lengths, targets, self.device)
        return replace(alone, extra_lengths=self.extra_lengths)

    def with_targets(self, lengths: np.ndarray) -> "DocumentLayout":
        """Returns the same source with target sentences of other lengths, [S]."""
        if self.targets is not None and np.array_equal(self.targets.lengths, lengths):
            return self
        kept = {key: plan for key, plan in self._plans.items() if not key.of_targets}
        return replace(self, targets=Ragged(lengths, self.device), _plans=kept)

    def with_extra_lengths(self, lengths: Tuple[np.ndarray, ...]) -> "DocumentLayout":
        """Returns the same document with extra sources of other lengths."""
        if self.extra_lengths is not None and all(map(np.array_equal, self.extra_lengths, lengths)):
            return self
        kept = {key: plan for key, plan in self._plans.items() if not key.of_extra_sources}
        return replace(self, extra_lengths=lengths, _plans=kept)

    @property
    def target_tokens(self) -> Ragged:
        """Target tokens in decoded sentences of a batch with targets."""
        assert self.targets is not None
        return self.targets

    def extra_lengths_of(self, number: int) -> np.ndarray:
        """Returns the number of items of an extra source for each decoded sentence, [S]."""
        assert self.extra_lengths is not None
        return self.extra_lengths[number]

    @property
    def token_sentence(self) -> Tensor:
        """Row of every token, [N]: the matrix M of [T] eq. 6, never built as a matrix."""
        return self.tokens.item_row

    @property
    def token_document(self) -> Tensor:
        """Document of every token, [N]."""
        return self.document_tokens.item_row

    @cached_property
    def decoded_document(self) -> np.ndarray:
        """Document of every decoded row, [S]."""
        document = np.repeat(np.arange(self.sentences.rows), self.sentences.lengths)
        return document if self.decoded is None else document[self.decoded]

    def index(self, array: np.ndarray) -> Tensor:
        """Returns an array as a tensor on the layout's device."""
        return index_tensor(array, self.device)

    def pack_tokens(self, src_tokens: Tensor) -> Tensor:
        """Returns the token ids [N] of all rows, from right-padded ids [S, width] of the decoded rows."""
        packed = self.decoded_tokens.pack(src_tokens)
        if self.decoded is None:
            return packed
        assert self.context_tokens is not None
        return torch.cat([packed, self.context_tokens]).index_select(0, self.plan(DecodedTokens())[1])

    def keep_decoded(self, packed: Tensor) -> Tensor:
        """Returns the states of decoded rows, [tokens of decoded rows, ...], from [N, ...]."""
        return packed if self.decoded is None else packed.index_select(0, self.plan(DecodedTokens())[0])


@dataclass(frozen=True)
class DecodedTokens(PlanKey[Tuple[Tensor, Tensor]]):
    """Tokens of decoded rows, in a batch with context-only rows.

    The plan has their indices, [tokens of decoded rows], and the index of every token in the tokens of decoded rows
    followed by the others, [N].
    """

    def asked_of(self, layout: DocumentLayout) -> bool:
        return layout.decoded is not None

    def make(self, layout: DocumentLayout) -> Tuple[Tensor, Tensor]:
        decoded = np.arange(layout.tokens.rows) if layout.decoded is None else layout.decoded
        others = np.setdiff1d(np.arange(layout.tokens.rows), decoded)
        items = layout.tokens.items_of(decoded)
        place = np.argsort(np.concatenate([items, layout.tokens.items_of(others)]))
        return layout.index(items), layout.index(place)


@dataclass(frozen=True)
class WithinSentences(PlanKey[AttentionPlan]):
    """Tokens attend to the tokens of their own sentence."""

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        return AttentionPlan(layout.tokens, layout.tokens)


@dataclass(frozen=True)
class ToSentences(PlanKey[AttentionPlan]):
    """Tokens attend to the sentence encodings of their document."""

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        return AttentionPlan(layout.document_tokens, layout.sentences)


@dataclass(frozen=True)
class OfTargets(PlanKey[DocumentLayout]):
    """Layout of the target sentences, in document order."""

    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)  # plans made for that layout in advance
    of_targets = True

    def make(self, layout: DocumentLayout) -> DocumentLayout:
        documents = layout.decoded_document if layout.target_document is None else layout.target_document
        _, first, lengths = np.unique(documents, return_index=True, return_counts=True)
        tokens = layout.target_tokens
        place = np.arange(tokens.rows) - np.repeat(first, lengths)
        targets = DocumentLayout.of(tokens.lengths, lengths, place, np.zeros_like(place), device=layout.device)
        return targets.with_plans(self.inner)


@dataclass(frozen=True)
class WithinTargets(PlanKey[AttentionPlan]):
    """Target tokens attend to the previous tokens of their sentence and to themselves."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        return AttentionPlan(layout.target_tokens, layout.target_tokens, causal=True)


@dataclass(frozen=True)
class TargetsToSource(PlanKey[AttentionPlan]):
    """Target tokens attend to the tokens of their source sentence."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        return AttentionPlan(layout.target_tokens, layout.decoded_tokens)


@dataclass(frozen=True)
class TargetsToSentences(PlanKey[AttentionPlan]):
    """Target tokens attend to all sentences of their document, context-only ones included."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        with_targets, first = np.unique(layout.decoded_document, return_index=True)
        tokens = Ragged(np.add.reduceat(layout.target_tokens.lengths, first), layout.device)
        return AttentionPlan(tokens, layout.sentences, key_rows=with_targets)

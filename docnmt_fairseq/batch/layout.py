"""Which token belongs to which sentence, paragraph and document of a batch: :class:`DocumentLayout`.

Token states stay *packed*, [tokens, d] without padding, in document order; they are padded only inside attention cores,
where rows of similar length are padded together (:class:`~docnmt_fairseq.batch.attention_plan.AttentionPlan`).

What depends on the batch alone, such as who attends to whom, is a *plan*. A :class:`PlanKey` says which and how it is
made; :meth:`DocumentLayout.plan` makes it once a batch. A model names the plans that it needs, the data loader's
workers make them and lay them out in one buffer (:meth:`DocumentLayout.gathered`), which reaches the device in one copy
that nothing waits for (:meth:`DocumentLayout.to`).

Symbols: R sentences (rows) in D documents, N tokens in all; a row is a sentence, also when it is only context.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Dict, Generic, Iterable, Optional, Tuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.device import gathered, pinned, to_device
from docnmt_fairseq.batch.grouping import computed_on
from docnmt_fairseq.batch.ragged import Ragged, index_tensor

P = TypeVar("P")
_ORIGIN = "_origin"  # of a layout that was moved, the one that it was; no field, so that it stays where it is


class PlanKey(Generic[P]):
    """Contract of what names a plan: a frozen dataclass, so that equal keys name one plan.

    Class attributes:
        of_targets: whether the plan depends on the targets' lengths.
        of_extra_sources: whether it depends on the lengths of sources beside the document.
    """

    of_targets = False
    of_extra_sources = False

    def asked_of(self, layout: "DocumentLayout") -> bool:
        """Whether a model that names the plan will ask this batch for it."""
        return layout.targets is not None or not self.of_targets

    def make(self, layout: "DocumentLayout") -> P:
        """The plan of a batch: dataclasses of arrays, and of tensors on the layout's device."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class DocumentLayout:
    """The structure of one batch, immutable. Rows are ordered by document, then by place in it.

    Attributes:
        tokens: tokens in sentences.
        sentences: sentences in documents.
        document_tokens: tokens in documents.
        sentence_position: [R] place of the sentence in its document, from 0.
        unit_position: [levels, R] place of its paragraph in the document, from 0, of its section, ..., as many levels
            as the corpus has.
        last_sentence, last_unit: the highest of these, of units on each level.
        decoded_tokens: tokens in the sentences that are translated; the others are context only.
        decoded: [S] rows of these; None: all.
        targets: target tokens of each decoded sentence; None without targets.
        context_tokens: [tokens of the context-only rows] their ids, in row order.
        extra_lengths: of each source beside the document, [S] how many items each decoded sentence has; None: there
            is none.
        similar: [R, K] how many rows back the earlier sentences stand that each is most like, most similar first, 0:
            none; those of other documents do not count. None: not known.
        epoch: of the training, from 1 on; 0: this is no training.
        drawn: [R, K] rows that were drawn for each from the training set, -1: none; None: nothing was drawn.
        target_document: [S] the document that each decoded row sees earlier targets of; None: that of its source.
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
        context_tokens: Optional[Tensor] = None,
        extra_lengths: Optional[Tuple[np.ndarray, ...]] = None,
        similar: Optional[np.ndarray] = None,
        epoch: int = 0,
        drawn: Optional[np.ndarray] = None,
        target_document: Optional[np.ndarray] = None,
        device: torch.device = torch.device("cpu"),
    ) -> "DocumentLayout":
        """The layout of a batch.

        Args:
            source_lengths: [R] tokens of each sentence, end of sentence included.
            document_lengths: [D] sentences of each document (or piece of one).
            sentence_position: see above.
            unit_position: see above; [R]: of paragraphs alone.
            target_lengths: [S] target tokens of each decoded sentence, None without targets.
            decoded, context_tokens, extra_lengths, similar, epoch, drawn, target_document: see above.
            device: of the tensors.

        Raises:
            ValueError: the documents do not have as many sentences as there are.
        """
        units = np.atleast_2d(unit_position)
        tokens, sentences = Ragged(source_lengths, device), Ragged(document_lengths, device)
        if sentences.total != tokens.rows:
            raise ValueError(f"documents of {sentences.total} sentences in all, but {tokens.rows} sentences")
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
            context_tokens=context_tokens,
            extra_lengths=extra_lengths,
            similar=similar,
            epoch=epoch,
            drawn=drawn,
            target_document=target_document,
        )

    @classmethod
    def of_single_sentences(
        cls,
        source_lengths: np.ndarray,
        target_lengths: Optional[np.ndarray] = None,
        device: torch.device = torch.device("cpu"),
    ) -> "DocumentLayout":
        """The layout of sentences without context: every sentence is a document of its own."""
        one, zero = np.ones(len(source_lengths), dtype=np.int64), np.zeros(len(source_lengths), dtype=np.int64)
        return cls.of(source_lengths, one, zero, zero, target_lengths, device=device)

    @property
    def device(self) -> torch.device:
        """The device of all index tensors."""
        return self.sentence_position.device

    def to(self, device: torch.device) -> "DocumentLayout":
        """The same layout with its tensors and those of its plans on ``device``, moved in one copy."""
        if torch.device(device) == self.device:
            return self
        moved = to_device(self, torch.device(device))
        object.__setattr__(moved, _ORIGIN, self)
        return moved

    def gathered(self) -> "DocumentLayout":
        """The same layout with its tensors and those of its plans in one buffer, ready to be moved."""
        return gathered(self)

    def pin_memory(self) -> "DocumentLayout":
        """The same layout in page-locked memory; data loaders call it where there is a GPU."""
        return pinned(self)

    def plan(self, key: PlanKey[P]) -> P:
        """The plan of that key, made at its first use and shared by all layers.

        Where the layout came from another device, the plan is made there, too, and moved in one copy.
        """
        if key not in self._plans:
            origin: Optional[DocumentLayout] = self.__dict__.get(_ORIGIN)
            with computed_on(self.device):
                self._plans[key] = key.make(self) if origin is None else to_device(origin.plan(key), self.device)
        return self._plans[key]

    def with_plans(self, keys: Iterable[PlanKey[Any]], device: Optional[torch.device] = None) -> "DocumentLayout":
        """This layout, with plans made that will be asked for on ``device`` (None: where the layout is)."""
        with computed_on(device or self.device):
            for key in keys:
                if key.asked_of(self):
                    self.plan(key)
        return self

    def without_context(self) -> "DocumentLayout":
        """The layout of the decoded sentences, each without anything around it."""
        targets = None if self.targets is None else self.targets.lengths
        alone = self.of_single_sentences(self.decoded_tokens.lengths, targets, self.device)
        return replace(alone, extra_lengths=self.extra_lengths)

    def with_targets(self, lengths: np.ndarray) -> "DocumentLayout":
        """The same source with target sentences of other lengths, [S]."""
        if self.targets is not None and np.array_equal(self.targets.lengths, lengths):
            return self
        kept = {key: plan for key, plan in self._plans.items() if not key.of_targets}
        return replace(self, targets=Ragged(lengths, self.device), _plans=kept)

    def with_extra_lengths(self, lengths: Tuple[np.ndarray, ...]) -> "DocumentLayout":
        """The same document beside extra sources of other lengths."""
        if self.extra_lengths is not None and all(map(np.array_equal, self.extra_lengths, lengths)):
            return self
        kept = {key: plan for key, plan in self._plans.items() if not key.of_extra_sources}
        return replace(self, extra_lengths=lengths, _plans=kept)

    @property
    def target_tokens(self) -> Ragged:
        """Target tokens in decoded sentences; ``ValueError`` for a batch without targets."""
        if self.targets is None:
            raise ValueError("a batch without targets")
        return self.targets

    def extra_lengths_of(self, number: int) -> np.ndarray:
        """How many items of the source of that number each decoded sentence has, [S]; ``ValueError`` without it."""
        if self.extra_lengths is None or number >= len(self.extra_lengths):
            raise ValueError(f"the batch has nothing of source {number} beside its document")
        return self.extra_lengths[number]

    @property
    def token_sentence(self) -> Tensor:
        """The row of every token, [N]: the matrix M of [T] eq. 6, never built as a matrix."""
        return self.tokens.item_row

    @property
    def token_document(self) -> Tensor:
        """The document of every token, [N]."""
        return self.document_tokens.item_row

    @cached_property
    def decoded_document(self) -> np.ndarray:
        """The document of every decoded row, [S]."""
        document = np.repeat(np.arange(self.sentences.rows), self.sentences.lengths)
        return document if self.decoded is None else document[self.decoded]

    def index(self, array: np.ndarray) -> Tensor:
        """An array as a tensor on the layout's device."""
        return index_tensor(array, self.device)

    def pack_tokens(self, src_tokens: Tensor) -> Tensor:
        """The token ids [N] of all rows, from right-padded [S, width] of the decoded ones and the context's."""
        packed = self.decoded_tokens.pack(src_tokens)
        if self.decoded is None:
            return packed
        if self.context_tokens is None:
            raise ValueError("a batch with sentences that are context only, but not their tokens")
        return torch.cat([packed, self.context_tokens]).index_select(0, self.plan(DecodedTokens()).place)

    def keep_decoded(self, packed: Tensor) -> Tensor:
        """What the decoder may see, [tokens of decoded rows, ...], from [N, ...]."""
        return packed if self.decoded is None else packed.index_select(0, self.plan(DecodedTokens()).items)


@dataclass(frozen=True)
class DecodedPlan:
    """Which tokens are those of decoded rows.

    Attributes:
        items: [tokens of decoded rows] which they are among all.
        place: [N] where every token is among those of decoded rows followed by those of the others.
    """

    items: Tensor
    place: Tensor


@dataclass(frozen=True)
class DecodedTokens(PlanKey[DecodedPlan]):
    """Which tokens are those of decoded rows, where some rows are context only."""

    def asked_of(self, layout: DocumentLayout) -> bool:
        """See :class:`PlanKey`."""
        return layout.decoded is not None

    def make(self, layout: DocumentLayout) -> DecodedPlan:
        """See :class:`PlanKey`."""
        decoded = np.arange(layout.tokens.rows) if layout.decoded is None else layout.decoded
        others = np.setdiff1d(np.arange(layout.tokens.rows), decoded)
        items = layout.tokens.items_of(decoded)
        place = np.argsort(np.concatenate([items, layout.tokens.items_of(others)]))
        return DecodedPlan(layout.index(items), layout.index(place))

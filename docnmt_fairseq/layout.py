"""Which word belongs to which sentence, paragraph and document of a batch: :class:`Ragged` and :class:`DocumentLayout`.

Word states stay *packed*, [tokens, d] without padding, in document order; they are padded only inside attention cores,
where rows of similar length are padded together (:class:`AttentionPlan`). Sizes live on the CPU as numpy arrays, so
that no shape ever has to be read back from a GPU.

Symbols: R sentences (rows) in D documents, N words in all; a row is a sentence, also when it is only context.
"""

import copy
from typing import Any, Callable, Dict, Optional, TypeVar

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.ragged import AttentionPlan, Ragged

T = TypeVar("T")


class DocumentLayout:
    """The structure of one batch, immutable. Rows are ordered by document, then by place in it.

    Args:
        source_lengths: [R] words of each sentence, end of sentence included.
        document_lengths: [D] sentences of each document (or piece of one).
        sentence_position: [R] place of the sentence in its document, from 0.
        paragraph_position: [R] place of its paragraph in the document, from 0.
        target_lengths: [S] target words of each decoded sentence, None without targets.
        decoded: [S] rows that are translated; others are context only. None: all.
        context_tokens: [words of the context-only rows] their tokens, in row order.
        similar: [R, K] how many rows back the earlier sentences stand that each is most like, most similar first, 0:
            none; those of other documents do not count. None: not known.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        document_lengths: np.ndarray,
        sentence_position: np.ndarray,
        paragraph_position: np.ndarray,
        target_lengths: Optional[np.ndarray] = None,
        decoded: Optional[np.ndarray] = None,
        context_tokens: Optional[Tensor] = None,
        device: torch.device = torch.device("cpu"),
        similar: Optional[np.ndarray] = None,
    ):
        self.words = Ragged(source_lengths, device)  # words in sentences
        self.sentences = Ragged(document_lengths, device)  # sentences in documents
        if self.sentences.total != self.words.rows:
            raise ValueError(f"documents of {self.sentences.total} sentences in all, but {self.words.rows} sentences")
        self.document_words = Ragged(np.add.reduceat(self.words.lengths, self.sentences.offsets[:-1]), device)
        self.sentence_position = torch.as_tensor(sentence_position, device=device)  # [R]
        self.paragraph_position = torch.as_tensor(paragraph_position, device=device)  # [R]
        self.decoded = decoded
        self.decoded_words = self.words if decoded is None else Ragged(self.words.lengths[decoded], device)
        self.targets = None if target_lengths is None else Ragged(target_lengths, device)
        self.context_tokens = None if context_tokens is None else context_tokens.to(device)
        self.similar = similar
        self.device = torch.device(device)
        self._plans: Dict[str, Any] = {}  # what was made for this batch: attention plans and the like

    @classmethod
    def of_single_sentences(
        cls, source_lengths: np.ndarray, target_lengths: Optional[np.ndarray] = None
    ) -> "DocumentLayout":
        """Returns the layout of sentences without context: every sentence is a document of its own."""
        one, zero = np.ones(len(source_lengths), dtype=np.int64), np.zeros(len(source_lengths), dtype=np.int64)
        return cls(source_lengths, one, zero, zero, target_lengths)

    def without_context(self) -> "DocumentLayout":
        """Returns the layout of the decoded sentences, each without anything around it."""
        targets = None if self.targets is None else self.targets.lengths
        return self.of_single_sentences(self.decoded_words.lengths, targets).to(self.device)

    def to(self, device: torch.device) -> "DocumentLayout":
        """Returns the same layout with its tensors on ``device``."""
        if torch.device(device) == self.device:
            return self
        return DocumentLayout(
            self.words.lengths,
            self.sentences.lengths,
            self.sentence_position,
            self.paragraph_position,
            None if self.targets is None else self.targets.lengths,
            self.decoded,
            self.context_tokens,
            torch.device(device),
            self.similar,
        )

    def with_targets(self, lengths: np.ndarray) -> "DocumentLayout":
        """Returns the same source with target sentences of other lengths, [S]."""
        if self.targets is not None and np.array_equal(self.targets.lengths, lengths):
            return self
        other = copy.copy(self)
        other.targets = Ragged(lengths, self.device)
        other._plans = {name: plan for name, plan in self._plans.items() if not name.startswith("targets")}
        return other

    @property
    def token_sentence(self) -> Tensor:
        """Returns the row of every word, [N]: the matrix M of [T] eq. 6, never built as a matrix."""
        return self.words.item_row

    @property
    def token_document(self) -> Tensor:
        """Returns the document of every word, [N]."""
        return self.document_words.item_row

    def words_of_documents(self, documents: Optional[np.ndarray] = None) -> Tensor:
        """Returns the item numbers of the words of ``documents`` (ascending; None: all), [M]."""
        if documents is None:
            return torch.arange(self.words.total, device=self.device)
        offsets = self.document_words.offsets
        ranges = [np.arange(offsets[document], offsets[document + 1]) for document in documents]
        return self.words._tensor(np.concatenate(ranges))

    @property
    def decoded_document(self) -> np.ndarray:
        """Returns the document of every decoded row, [S]."""
        document = np.repeat(np.arange(self.sentences.rows), self.sentences.lengths)
        return document if self.decoded is None else document[self.decoded]

    def pack_tokens(self, src_tokens: Tensor) -> Tensor:
        """Returns the word ids [N] of all rows, from right-padded [S, width] of the decoded ones and the context's."""
        if self.decoded is None:
            return self.words.pack(src_tokens)
        tokens = src_tokens.new_empty(self.words.total)
        is_decoded = torch.zeros(self.words.rows, dtype=torch.bool, device=self.device)
        is_decoded[torch.as_tensor(self.decoded, device=self.device)] = True
        of_decoded = is_decoded.index_select(0, self.words.item_row)
        tokens[of_decoded] = self.decoded_words.pack(src_tokens)
        tokens[~of_decoded] = self.context_tokens
        return tokens

    def keep_decoded(self, packed: Tensor) -> Tensor:
        """Returns [words of decoded rows, ...] from [N, ...]: what the decoder may see."""
        if self.decoded is None:
            return packed
        ranges = [np.arange(self.words.offsets[r], self.words.offsets[r + 1]) for r in self.decoded]
        return packed.index_select(0, self.words._tensor(np.concatenate(ranges)))

    @property
    def of_targets(self) -> "DocumentLayout":
        """Returns the layout of the target sentences, those of a document one after another."""

        def make() -> "DocumentLayout":
            _, first, lengths = np.unique(self.decoded_document, return_index=True, return_counts=True)
            place = np.arange(self.targets.rows) - np.repeat(first, lengths)
            return DocumentLayout(self.targets.lengths, lengths, place, np.zeros_like(place), device=self.device)

        return self.shared("targets as a source", make)

    def plan(self, name: str, queries: Ragged, keys: Ragged, **options: object) -> AttentionPlan:
        """Returns the attention plan of that name, made at its first use and shared by all layers."""
        return self.shared(name, lambda: AttentionPlan(queries, keys, **options))

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Returns what ``make`` gives, called at the first use of that name; kept for all layers."""
        if name not in self._plans:
            self._plans[name] = make()
        return self._plans[name]

    @property
    def within_sentences(self) -> AttentionPlan:
        """Returns the plan of words attending to the words of their own sentence."""
        return self.plan("words>words", self.words, self.words)

    @property
    def to_sentences(self) -> AttentionPlan:
        """Returns the plan of words attending to the sentence encodings of their document."""
        return self.plan("document>sentences", self.document_words, self.sentences)

    @property
    def within_targets(self) -> AttentionPlan:
        """Returns the causal plan of target words attending to the earlier ones of their sentence."""
        return self.plan("targets>targets", self.targets, self.targets, causal=True)

    @property
    def targets_to_source(self) -> AttentionPlan:
        """Returns the plan of target words attending to the words of their source sentence."""
        return self.plan("targets>words", self.targets, self.decoded_words)

    @property
    def targets_to_sentences(self) -> AttentionPlan:
        """Returns the plan of target words attending to all sentences of their document, context-only ones included."""
        with_targets, first = np.unique(self.decoded_document, return_index=True)
        words = Ragged(np.add.reduceat(self.targets.lengths, first), self.device)
        return self.plan("targets>sentences", words, self.sentences, key_rows=with_targets)

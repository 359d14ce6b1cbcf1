"""Which word belongs to which sentence, paragraph and document of a batch: :class:`Ragged` and :class:`DocumentLayout`.

Word states stay *packed*, [tokens, d] without padding, in document order; they are padded only inside attention cores,
where rows of similar length are padded together (:class:`AttentionPlan`). Sizes live on the CPU as numpy arrays, so
that no shape ever has to be read back from a GPU.

Symbols: R sentences (rows) in D documents, N words in all; a row is a sentence, also when it is only context.
"""

import copy
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")

# A bucket of rows may be this much wider than its shortest row: about 10 % padding on text, few buckets.
BUCKET_GROWTH = 1.25
BUCKET_SLACK = 4


class Ragged:
    """Rows of different lengths stored one after another: words in sentences, sentences in documents, ...

    Args:
        lengths: [rows] items in each row, all at least 1.
        device: where the index tensors go.
    """

    def __init__(self, lengths: np.ndarray, device: torch.device = torch.device("cpu")):
        self.lengths = np.asarray(lengths, dtype=np.int64)
        if self.lengths.size and self.lengths.min() < 1:
            raise ValueError("every row needs at least one item")
        self.offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.lengths)])
        self.rows = len(self.lengths)
        self.total = int(self.offsets[-1])
        self.longest = int(self.lengths.max()) if self.rows else 0
        self.device = device
        row = np.repeat(np.arange(self.rows), self.lengths)
        self.item_row = self._tensor(row)  # [total]
        self.item_column = self._tensor(np.arange(self.total) - self.offsets[row])  # [total]

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    @property
    def lengths_tensor(self) -> Tensor:
        """Returns the lengths as a tensor, [rows]."""
        return self._tensor(self.lengths)

    def to(self, device: torch.device) -> "Ragged":
        """Returns the same rows with their tensors on ``device``."""
        return self if device == self.device else Ragged(self.lengths, device)

    def pack(self, padded: Tensor) -> Tensor:
        """Returns [total, ...] from right-padded [rows, width, ...]."""
        return padded.flatten(0, 1).index_select(0, self.item_row * padded.size(1) + self.item_column)

    def pad(self, packed: Tensor, value: float = 0.0, width: Optional[int] = None) -> Tensor:
        """Returns right-padded [rows, width or longest, ...] from [total, ...]."""
        width = width or self.longest
        padded = packed.new_full((self.rows * width, *packed.shape[1:]), value)
        return padded.index_copy(0, self.item_row * width + self.item_column, packed).unflatten(0, (self.rows, width))

    def padding_mask(self) -> Tensor:
        """Returns [rows, longest], True at padding."""
        return torch.arange(self.longest, device=self.device) >= self.lengths_tensor[:, None]

    def sum(self, packed: Tensor) -> Tensor:
        """Returns the sum of every row's items, [rows, ...] from [total, ...]."""
        return packed.new_zeros(self.rows, *packed.shape[1:]).index_add(0, self.item_row, packed)

    def softmax(self, scores: Tensor) -> Tensor:
        """Returns the softmax over every row's items, [total, k] from [total, k]."""
        index = self.item_row[:, None].expand_as(scores)
        least = scores.new_full((self.rows, scores.size(1)), -torch.inf)
        highest = least.scatter_reduce(0, index, scores.detach(), "amax")
        weights = (scores - highest.index_select(0, self.item_row)).exp()
        return weights / self.sum(weights).index_select(0, self.item_row)

    def buckets(self, rows: Optional[np.ndarray] = None) -> List[np.ndarray]:
        """Returns row numbers (of ``rows``, default all) grouped by similar length, shortest first."""
        rows = np.arange(self.rows) if rows is None else rows
        order = rows[np.argsort(self.lengths[rows], kind="stable")]
        lengths = self.lengths[order]
        groups, start = [], 0
        while start < len(order):
            widest = int(lengths[start] * BUCKET_GROWTH) + BUCKET_SLACK
            end = int(np.searchsorted(lengths, widest, side="right"))
            groups.append(order[start:end])
            start = end
        return groups

    def block(self, rows: np.ndarray) -> Tuple[Tensor, Optional[Tensor]]:
        """Returns item numbers [b, width] of the given rows padded together, and the padding (None: there is none).

        Padding repeats a row's last item: a real one, so that gathering is safe; whoever attends must mask it.
        """
        index, padding = self.block_arrays(rows)
        return self._tensor(index), self._tensor(padding) if padding.any() else None

    def block_arrays(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Returns :meth:`block` as arrays, the padding always."""
        lengths = self.lengths[rows][:, None]
        column = np.arange(int(lengths.max()))
        return self.offsets[rows][:, None] + np.minimum(column, lengths - 1), column >= lengths


@dataclass(frozen=True)
class AttentionBlock:
    """Rows attended together: queries [b, w_q] and keys [b, w_k] as item numbers, padding True."""

    rows: np.ndarray
    query: Tensor
    key: Tensor
    key_padding: Optional[Tensor]


class AttentionPlan:
    """How packed queries attend to packed keys, row by row: row r of ``queries`` sees row r of ``keys``.

    Args:
        queries: rows of the queries.
        keys: rows of the keys, as many.
        rows: the rows to attend in, default all; the results of others are left out.
        causal: query i of a row sees keys 0..i only.
    """

    def __init__(self, queries: Ragged, keys: Ragged, rows: Optional[np.ndarray] = None, causal: bool = False):
        if queries.rows != keys.rows:
            raise ValueError(f"{queries.rows} rows of queries cannot attend to {keys.rows} rows of keys")
        self.causal = causal
        self.blocks: List[AttentionBlock] = []
        slot, first = np.full(queries.total, -1, dtype=np.int64), 0
        for group in queries.buckets(rows):
            index, padding = queries.block_arrays(group)
            self.blocks.append(AttentionBlock(group, queries._tensor(index), *keys.block(group)))
            slot[index[~padding]] = first + np.flatnonzero(~padding)
            first += index.size
        items = np.flatnonzero(slot >= 0)
        self.items = queries._tensor(items)  # queries that are attended for, ascending
        self.slots = queries._tensor(slot[items])  # where each such query's result is among all blocks'

    def gather(self, outputs: List[Tensor]) -> Tensor:
        """Returns the results [len(items), ...] from those of the blocks, each [b, w_q, ...]."""
        return torch.cat([output.flatten(0, 1) for output in outputs]).index_select(0, self.slots)


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
        self.device = torch.device(device)
        self._plans: Dict[str, Any] = {}  # what was made for this batch: attention plans and the like

    @classmethod
    def of_single_sentences(
        cls, source_lengths: np.ndarray, target_lengths: Optional[np.ndarray] = None
    ) -> "DocumentLayout":
        """Returns the layout of sentences without context: every sentence is a document of its own."""
        one, zero = np.ones(len(source_lengths), dtype=np.int64), np.zeros(len(source_lengths), dtype=np.int64)
        return cls(source_lengths, one, zero, zero, target_lengths)

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

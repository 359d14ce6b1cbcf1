"""Attention plans: which packed queries attend to which packed keys, with rows of similar length padded together.

:class:`AttentionPlan` is the structure; the :class:`~docnmt_fairseq.batch.layout.PlanKey` classes below name the plans
that every model has.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged, attention_groups, set_fields


@dataclass(frozen=True, init=False, eq=False)
class Slots:
    """Positions of packed items in one tensor that holds groups of padded rows, one group after another.

    Attributes:
        index: [slots] item of every slot; padding repeats a row's last item.
        items: [k] items that have a slot, ascending.
        slots: [k] their slots.
        total: number of items, with a slot or without.
        shapes: [b, width] of each group.
        paddings: padding mask [b, width] of each group, True at padding; None without padding.
    """

    index: Tensor
    items: Tensor
    slots: Tensor
    total: int
    shapes: List[Tuple[int, ...]]
    paddings: List[Optional[Tensor]]

    def __init__(self, rows: Ragged, groups: List[np.ndarray]):
        """Assigns the slots.

        Args:
            rows: the items.
            groups: row numbers of each group; a row is in at most one.
        """
        blocks = [rows.block(group) for group in groups]
        index = np.concatenate([np.zeros(0, dtype=np.int64), *(block.ravel() for block, _ in blocks)])
        real = np.concatenate([np.zeros(0, dtype=np.int64), *(~padding.ravel() for _, padding in blocks)]).nonzero()[0]
        ascending = np.argsort(index[real], kind="stable")
        set_fields(
            self,
            index=rows.index(index),
            items=rows.index(index[real][ascending]),
            slots=rows.index(real[ascending]),
            total=rows.total,
            shapes=[block.shape for block, _ in blocks],
            paddings=[rows.index(padding) if padding.any() else None for _, padding in blocks],
        )

    def split(self, padded: Tensor) -> List[Tensor]:
        """Returns each group's part [b, width, ...] of a tensor over all slots, [slots, ...]."""
        parts = padded.split([rows * width for rows, width in self.shapes])
        return [part.unflatten(0, shape) for part, shape in zip(parts, self.shapes)]


@dataclass(frozen=True)
class PackedRows:
    """Queries or keys of an attention without padding, in the format of variable-length attention kernels.

    Attributes:
        items: [k] item numbers, row after row; None: all items in order.
        cumulative: [rows + 1] int32, start of every row, then the total.
        longest: length of the longest row.
    """

    items: Optional[Tensor]
    cumulative: Tensor
    longest: int

    @classmethod
    def of(cls, rows: Ragged, selected: np.ndarray) -> "PackedRows":
        """Returns the selected rows, in that order."""
        lengths = rows.lengths[selected]
        all_in_order = np.array_equal(selected, np.arange(rows.rows))
        cumulative = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        items = None if all_in_order else rows.index(rows.items_of(selected))
        return cls(items, rows.index(cumulative), int(lengths.max(initial=0)))

    def take(self, packed: Tensor) -> Tensor:
        """Returns their part [k, ...] of packed items [total, ...]."""
        return packed if self.items is None else packed.index_select(0, self.items)


@dataclass(frozen=True)
class AttentionBlock:
    """Rows attended together: item numbers of queries [b, w_q] and keys [b, w_k], padding mask of keys [b, w_k]."""

    rows: np.ndarray
    query: Tensor
    key: Tensor
    key_padding: Optional[Tensor]


@dataclass(frozen=True, init=False, eq=False)
class AttentionPlan:
    """Attention of packed queries to packed keys, row by row: row r of the queries attends to row r of the keys.

    Attributes:
        queries, keys: slots of both sides in padded groups.
        groups: row numbers of each group of queries.
        packed_queries, packed_keys: the same rows without padding.
        causal: query i of a row attends to keys 0..i only.
    """

    queries: Slots
    keys: Slots
    groups: List[np.ndarray]
    packed_queries: PackedRows
    packed_keys: PackedRows
    causal: bool

    def __init__(
        self,
        queries: Ragged,
        keys: Ragged,
        rows: Optional[np.ndarray] = None,
        causal: bool = False,
        key_rows: Optional[np.ndarray] = None,
    ):
        """Groups rows of similar lengths; ``ValueError`` if rows of queries and keys do not match one to one.

        Args:
            queries: rows of the queries.
            keys: rows of the keys, as many.
            rows: rows that attend, default all; the others get no result.
            causal: see above.
            key_rows: row of ``keys`` for each row of queries if it is not the same number; no row twice.
        """
        itself = queries is keys and key_rows is None
        key_rows = np.arange(keys.rows) if key_rows is None else key_rows
        if queries.rows != len(key_rows):
            raise ValueError(f"{queries.rows} rows of queries cannot attend to {len(key_rows)} rows of keys")
        if len(np.unique(key_rows)) != len(key_rows):
            raise ValueError("a row of keys cannot be shared by two rows of queries")
        rows = np.arange(queries.rows) if rows is None else np.sort(rows)
        widths = (queries.lengths[rows], None if itself else keys.lengths[key_rows[rows]])
        groups = [rows[group] for group in attention_groups(*widths)]
        query_slots, packed_queries = Slots(queries, groups), PackedRows.of(queries, rows)
        set_fields(
            self,
            queries=query_slots,
            keys=query_slots if itself else Slots(keys, [key_rows[group] for group in groups]),
            groups=groups,
            packed_queries=packed_queries,
            packed_keys=packed_queries if itself else PackedRows.of(keys, key_rows[rows]),
            causal=causal,
        )

    @property
    def items(self) -> Tensor:
        """Queries that get a result, ascending."""
        return self.queries.items

    @cached_property
    def blocks(self) -> List[AttentionBlock]:
        """The groups as blocks of item numbers."""
        queries, keys = (side.split(side.index) for side in (self.queries, self.keys))
        return [AttentionBlock(*block) for block in zip(self.groups, queries, keys, self.keys.paddings)]

    def gather(self, outputs: List[Tensor]) -> Tensor:
        """Returns the results [len(items), ...] from those of the blocks, each [b, w_q, ...]."""
        return torch.cat([output.flatten(0, 1) for output in outputs]).index_select(0, self.queries.slots)


@dataclass(frozen=True)
class WithinSentences(PlanKey[AttentionPlan]):
    """Tokens attend to the tokens of their own sentence."""

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.tokens, layout.tokens)


@dataclass(frozen=True)
class ToSentences(PlanKey[AttentionPlan]):
    """Tokens attend to the sentence encodings of their document."""

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.document_tokens, layout.sentences)


@dataclass(frozen=True)
class OfTargets(PlanKey[DocumentLayout]):
    """Layout of the target sentences, in document order.

    Attributes:
        inner: plans made for that layout in advance.
    """

    inner: Tuple[PlanKey[Any], ...] = field(default=(), compare=False)
    of_targets = True

    def make(self, layout: DocumentLayout) -> DocumentLayout:
        """See :class:`PlanKey`."""
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
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.target_tokens, layout.target_tokens, causal=True)


@dataclass(frozen=True)
class TargetsToSource(PlanKey[AttentionPlan]):
    """Target tokens attend to the tokens of their source sentence."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        return AttentionPlan(layout.target_tokens, layout.decoded_tokens)


@dataclass(frozen=True)
class TargetsToSentences(PlanKey[AttentionPlan]):
    """Target tokens attend to all sentences of their document, context-only ones included."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> AttentionPlan:
        """See :class:`PlanKey`."""
        with_targets, first = np.unique(layout.decoded_document, return_index=True)
        tokens = Ragged(np.add.reduceat(layout.target_tokens.lengths, first), layout.device)
        return AttentionPlan(tokens, layout.sentences, key_rows=with_targets)

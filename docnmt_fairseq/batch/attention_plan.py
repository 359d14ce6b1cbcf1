"""How rows of queries attend to rows of keys: padded together only where their lengths are alike."""

from dataclasses import dataclass
from functools import cached_property
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.grouping import attention_groups
from docnmt_fairseq.batch.ragged import Ragged, set_fields


@dataclass(frozen=True, init=False, eq=False)
class Slots:
    """Where packed items stand when groups of their rows are padded, one group after another, in one tensor.

    Attributes:
        index: [slots] the item of every slot; padding repeats a row's last.
        items: [k] the items that have a slot, ascending.
        slots: [k] where they are.
        total: how many items there are, with a slot or without.
        shapes: [b, width] of each group.
        paddings: [b, width] of each group, True at padding; None: there is none.
    """

    index: Tensor
    items: Tensor
    slots: Tensor
    total: int
    shapes: List[Tuple[int, ...]]
    paddings: List[Optional[Tensor]]

    def __init__(self, rows: Ragged, groups: List[np.ndarray]):
        """Lays out the slots.

        Args:
            rows: the items.
            groups: row numbers of each group; a row is in one at most.
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
        """The groups' parts [b, width, ...] of what is in all slots, [slots, ...]."""
        parts = padded.split([rows * width for rows, width in self.shapes])
        return [part.unflatten(0, shape) for part, shape in zip(parts, self.shapes)]


@dataclass(frozen=True)
class PackedRows:
    """One side of an attention, row after row, as kernels for rows of different lengths take it.

    Attributes:
        items: [k] which items these are, row after row; None: all in their order.
        cumulative: [rows + 1] int32, where every row begins among them, and how many there are.
        longest: the length of the longest row.
    """

    items: Optional[Tensor]
    cumulative: Tensor
    longest: int

    @classmethod
    def of(cls, rows: Ragged, which: np.ndarray) -> "PackedRows":
        """Some rows, in that order."""
        lengths = rows.lengths[which]
        all_in_order = np.array_equal(which, np.arange(rows.rows))
        cumulative = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        items = None if all_in_order else rows.index(rows.items_of(which))
        return cls(items, rows.index(cumulative), int(lengths.max(initial=0)))

    def take(self, packed: Tensor) -> Tensor:
        """Their part [k, ...] of packed items [total, ...]."""
        return packed if self.items is None else packed.index_select(0, self.items)


@dataclass(frozen=True)
class AttentionBlock:
    """Rows attended together: queries [b, w_q] and keys [b, w_k] as item numbers, padding [b, w_k] True there."""

    rows: np.ndarray
    query: Tensor
    key: Tensor
    key_padding: Optional[Tensor]


@dataclass(frozen=True, init=False, eq=False)
class AttentionPlan:
    """How packed queries attend to packed keys, row by row: row r of the queries sees row r of the keys.

    Attributes:
        queries, keys: where they stand when rows are padded together.
        groups: the rows of queries that are.
        packed_queries, packed_keys: the same rows without padding, queries in their order.
        causal: query i of a row sees keys 0..i only.
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
        """Groups rows of similar lengths.

        Args:
            queries: rows of the queries.
            keys: rows of the keys, as many.
            rows: the rows to attend in, default all; the results of others are left out.
            causal: see above.
            key_rows: the row of ``keys`` that each row of queries sees, where it is not the same one; no row twice.

        Raises:
            ValueError: not as many rows of keys as of queries, or one twice.
        """
        itself = queries is keys and key_rows is None
        key_rows = np.arange(keys.rows) if key_rows is None else key_rows
        if queries.rows != len(key_rows):
            raise ValueError(f"{queries.rows} rows of queries cannot attend to {len(key_rows)} rows of keys")
        if len(np.unique(key_rows)) != len(key_rows):
            raise ValueError("no row of keys can be seen by two rows of queries")
        rows = np.arange(queries.rows) if rows is None else np.sort(rows)
        widths = (queries.lengths[rows], None if itself else keys.lengths[key_rows[rows]])
        groups = [rows[group] for group in attention_groups(*widths)]
        of_queries, packed_queries = Slots(queries, groups), PackedRows.of(queries, rows)
        set_fields(
            self,
            queries=of_queries,
            keys=of_queries if itself else Slots(keys, [key_rows[group] for group in groups]),
            groups=groups,
            packed_queries=packed_queries,
            packed_keys=packed_queries if itself else PackedRows.of(keys, key_rows[rows]),
            causal=causal,
        )

    @property
    def items(self) -> Tensor:
        """The queries that are attended for, ascending."""
        return self.queries.items

    @cached_property
    def blocks(self) -> List[AttentionBlock]:
        """The groups as blocks of item numbers."""
        queries, keys = (side.split(side.index) for side in (self.queries, self.keys))
        return [AttentionBlock(*block) for block in zip(self.groups, queries, keys, self.keys.paddings)]

    def gather(self, outputs: List[Tensor]) -> Tensor:
        """The results [len(items), ...] from those of the blocks, each [b, w_q, ...]."""
        return torch.cat([output.flatten(0, 1) for output in outputs]).index_select(0, self.queries.slots)

"""Packed rows of different lengths, and attention between them: rows of similar length are padded together."""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

# Cost of one more group, in pairs of a query and a key: a share of the batch's pairs, so that a batch has 15 to 40
# groups whatever its size.
GROUP_COST_SHARE = 1 / 128
MIN_GROUP_COST = 512.0
# A GPU computes more pairs than this while the CPU launches the operations of one group. It also bounds the padding.
MIN_GROUP_COST_GPU = 2.0**18

_on_gpu: "ContextVar[bool]" = ContextVar("_on_gpu", default=False)


@dataclass(frozen=True, init=False, eq=False)
class Ragged:
    """Rows of different lengths stored one after another: tokens in sentences, sentences in documents, ...

    Sizes are numpy arrays, so no shape is ever read back from a GPU.

    Attributes:
        lengths: [rows] items in each row, all at least 1.
        offsets: [rows + 1] first item of each row, then the total.
        rows, total, longest: number of rows, number of items, length of the longest row.
        item_row, item_column: [total] row of every item, and its position in the row.
        lengths_tensor: [rows] the lengths.
    """

    lengths: np.ndarray
    offsets: np.ndarray
    rows: int
    total: int
    longest: int
    item_row: Tensor
    item_column: Tensor
    lengths_tensor: Tensor

    def __init__(self, lengths: np.ndarray, device: torch.device = torch.device("cpu")):
        """Creates the rows."""
        lengths = np.asarray(lengths, dtype=np.int64)
        assert lengths.min(initial=1) >= 1, "every row needs at least one item"
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        row = np.repeat(np.arange(len(lengths)), lengths)
        set_fields(
            self,
            lengths=lengths,
            offsets=offsets,
            rows=len(lengths),
            total=len(row),
            longest=int(lengths.max(initial=0)),
            item_row=index_tensor(row, device),
            item_column=index_tensor(np.arange(len(row)) - offsets[row], device),
            lengths_tensor=index_tensor(lengths, device),
        )

    @property
    def device(self) -> torch.device:
        """Device of the index tensors."""
        return self.item_row.device

    def index(self, array: np.ndarray) -> Tensor:
        """Returns an array as a tensor on the device of the others."""
        return index_tensor(array, self.device)

    def pack(self, padded: Tensor) -> Tensor:
        """Returns packed [total, ...] from right-padded [rows, width, ...]."""
        return padded.flatten(0, 1).index_select(0, self.item_row * padded.size(1) + self.item_column)

    def pad(self, packed: Tensor, value: float = 0.0, width: Optional[int] = None) -> Tensor:
        """Returns right-padded [rows, width or longest, ...] from [total, ...]."""
        width = width or self.longest
        padded = packed.new_full((self.rows * width, *packed.shape[1:]), value)
        return padded.index_copy(0, self.item_row * width + self.item_column, packed).unflatten(0, (self.rows, width))

    def padding_mask(self) -> Tensor:
        """Returns the padding mask of right-padded rows, [rows, longest], True at padding."""
        return torch.arange(self.longest, device=self.device) >= self.lengths_tensor[:, None]

    def sum(self, packed: Tensor) -> Tensor:
        """Returns the sum of every row's items, [rows, ...] from [total, ...]; accumulates in float32 at least."""
        return self._sum(packed).to(packed.dtype)

    def _sum(self, packed: Tensor) -> Tensor:
        packed = packed.to(torch.promote_types(packed.dtype, torch.float32))
        return packed.new_zeros(self.rows, *packed.shape[1:]).index_add(0, self.item_row, packed)

    def mean(self, packed: Tensor) -> Tensor:
        """Returns the mean of every row's items, [rows, d] from [total, d]; accumulates in float32 at least."""
        sums = self._sum(packed)
        return (sums / self.lengths_tensor[:, None].to(sums.dtype)).to(packed.dtype)

    def softmax(self, scores: Tensor) -> Tensor:
        """Returns the softmax over every row's items, [total, k] from [total, k], in float32 at least."""
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        index = self.item_row[:, None].expand_as(scores)
        lowest = scores.new_full((self.rows, scores.size(1)), -torch.inf)
        highest = lowest.scatter_reduce(0, index, scores.detach(), "amax")
        weights = (scores - highest.index_select(0, self.item_row)).exp()
        return weights / self.sum(weights).index_select(0, self.item_row)

    def items_of(self, rows: np.ndarray) -> np.ndarray:
        """Returns the item numbers of the given rows, one row after another."""
        return ranges(self.offsets[rows], self.lengths[rows])

    def block(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Returns item numbers [b, width] of the given rows padded together, and the padding mask [b, width].

        Padding repeats the last item of a row, so that gathering is safe; attention must mask it.
        """
        lengths = self.lengths[rows][:, None]
        column = np.arange(int(lengths.max()))
        return self.offsets[rows][:, None] + np.minimum(column, lengths - 1), column >= lengths


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns starts[0], starts[0] + 1, …, lengths[0] numbers in all, followed by those from starts[1] on, …."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def set_fields(instance: object, **values: object) -> None:
    """Sets the fields of a frozen dataclass; only for use in its own constructor."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def index_tensor(array: np.ndarray, device: torch.device = torch.device("cpu")) -> Tensor:
    """Returns an array as a tensor on a device."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


@contextmanager
def computed_on(device: torch.device) -> Iterator[None]:
    """Context in which groups are chosen for computation on ``device``; nested contexts for the CPU change nothing."""
    before = _on_gpu.set(_on_gpu.get() or device.type != "cpu")
    try:
        yield
    finally:
        _on_gpu.reset(before)


def cheapest_groups(lengths: np.ndarray, area: np.ndarray, group_cost: float) -> List[np.ndarray]:
    """Returns the indices of ``lengths`` in groups, shortest first, that minimise padded area plus cost per group.

    A group of b rows costs b · area[longest row] + group_cost. Exact dynamic programming over distinct lengths.

    Args:
        lengths: [rows].
        area: [longest + 1] cost of a row padded to a length; non-decreasing.
        group_cost: cost of a group, in the same unit.
    """
    order = np.argsort(lengths, kind="stable")
    distinct, first = np.unique(lengths[order], return_index=True)
    before = np.append(first, len(order))  # rows shorter than each distinct length, then all
    lowest, start_of = np.zeros(len(before)), np.zeros(len(before), dtype=np.int64)
    for end, widest in enumerate(distinct, start=1):
        costs = lowest[:end] + (before[end] - before[:end]) * area[widest]
        start_of[end] = costs.argmin()
        lowest[end] = costs[start_of[end]] + group_cost
    groups, end = [], len(distinct)
    while end:
        groups.append(order[before[start_of[end]] : before[end]])
        end = start_of[end]
    return groups[::-1]


def attention_groups(queries: np.ndarray, keys: Optional[np.ndarray] = None) -> List[np.ndarray]:
    """Returns rows in groups that attend together: similar numbers of queries and, within those, of keys.

    Args:
        queries: [rows] queries of each row.
        keys: [rows] keys of each row; None: as many as queries.
    """
    pairs = float((queries * (queries if keys is None else keys)).sum())
    group_cost = max(MIN_GROUP_COST_GPU if _on_gpu.get() else MIN_GROUP_COST, pairs * GROUP_COST_SHARE)
    width = np.arange(int(queries.max(initial=0)) + 1, dtype=np.float64)
    if keys is None:
        return cheapest_groups(queries, width**2, group_cost)
    keys_per_query = keys.sum() / max(1, queries.sum())
    groups = []
    for group in cheapest_groups(queries, width**2 * keys_per_query, group_cost):
        area = np.arange(int(keys[group].max()) + 1) * float(queries[group].max())
        groups += [group[places] for places in cheapest_groups(keys[group], area, group_cost)]
    return groups


@dataclass(frozen=True, init=False, eq=False)
class Slots:
    """Positions of packed items in one tensor that holds groups of padded rows, one group after another."""

    index: Tensor  # [slots] item of every slot; padding repeats a row's last item
    items: Tensor  # [k] items that have a slot, ascending
    slots: Tensor  # [k] their slots
    total: int  # number of items, with a slot or without
    shapes: List[Tuple[int, ...]]  # [b, width] of each group
    paddings: List[Optional[Tensor]]  # padding mask [b, width] of each group, True at padding; None without padding

    def __init__(self, rows: Ragged, groups: List[np.ndarray]):
        """Assigns the slots."""
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
    """Queries or keys of an attention without padding, in the format of variable-length attention kernels."""

    items: Optional[Tensor]  # [k] item numbers, row after row; None: all items in order
    cumulative: Tensor  # [rows + 1] int32, start of every row, then the total
    longest: int  # length of the longest row

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
    """Attention of packed queries to packed keys, row by row: row r of the queries attends to row r of the keys."""

    queries: Slots  # in padded groups
    keys: Slots
    groups: List[np.ndarray]  # row numbers of each group of queries
    packed_queries: PackedRows  # the same rows without padding
    packed_keys: PackedRows
    causal: bool  # query i of a row attends to keys 0..i only

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
            rows: rows that attend, default all; the others get no result.
            key_rows: row of ``keys`` for each row of queries if it is not the same number; no row twice.
        """
        itself = queries is keys and key_rows is None
        key_rows = np.arange(keys.rows) if key_rows is None else key_rows
        one_to_one = queries.rows == len(key_rows) == len(np.unique(key_rows))
        assert one_to_one, "rows of queries and keys do not match one to one"
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

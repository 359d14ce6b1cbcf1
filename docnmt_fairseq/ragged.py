"""Rows of different lengths, packed one after another (:class:`Ragged`), and how some attend to others."""

from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.buckets import attention_groups


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
        return [rows[group] for group in attention_groups(self.lengths[rows])]

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


class Slots:
    """Where packed items stand when groups of their rows are padded, one group after another, in one tensor.

    Args:
        rows: the items.
        groups: row numbers of each group; a row is in one at most.

    Attributes:
        index: [slots] the item of every slot; padding repeats a row's last.
        items: [k] the items that have a slot, ascending.
        slots: [k] where they are.
        total: how many items there are, with a slot or without.
    """

    def __init__(self, rows: Ragged, groups: List[np.ndarray]):
        blocks = [rows.block_arrays(group) for group in groups]
        index = np.concatenate([np.zeros(0, dtype=np.int64), *(block.ravel() for block, _ in blocks)])
        real = np.concatenate([np.zeros(0, dtype=np.int64), *(~padding.ravel() for _, padding in blocks)]).nonzero()[0]
        ascending = np.argsort(index[real], kind="stable")
        self.index = rows._tensor(index)
        self.items = rows._tensor(index[real][ascending])
        self.slots = rows._tensor(real[ascending])
        self.total = rows.total
        self.shapes = [block.shape for block, _ in blocks]
        self.paddings = [rows._tensor(padding) if padding.any() else None for _, padding in blocks]

    def split(self, padded: Tensor) -> List[Tensor]:
        """Returns the groups' parts [b, width, ...] of what is in all slots, [slots, ...]."""
        parts = padded.split([rows * width for rows, width in self.shapes])
        return [part.unflatten(0, shape) for part, shape in zip(parts, self.shapes)]


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
        key_rows: the row of ``keys`` that each row of queries sees, where it is not the same one; no row twice.
    """

    def __init__(
        self,
        queries: Ragged,
        keys: Ragged,
        rows: Optional[np.ndarray] = None,
        causal: bool = False,
        key_rows: Optional[np.ndarray] = None,
    ):
        itself = queries is keys and key_rows is None
        key_rows = np.arange(keys.rows) if key_rows is None else key_rows
        if queries.rows != len(key_rows):
            raise ValueError(f"{queries.rows} rows of queries cannot attend to {len(key_rows)} rows of keys")
        if len(np.unique(key_rows)) != len(key_rows):
            raise ValueError("no row of keys can be seen by two rows of queries")
        rows = np.arange(queries.rows) if rows is None else rows
        widths = (queries.lengths[rows], None if itself else keys.lengths[key_rows[rows]])
        groups = [rows[group] for group in attention_groups(*widths)]
        self.causal = causal
        self.queries = Slots(queries, groups)
        self.keys = self.queries if itself else Slots(keys, [key_rows[group] for group in groups])
        index = (side.split(side.index) for side in (self.queries, self.keys))
        self.blocks = [AttentionBlock(*block) for block in zip(groups, *index, self.keys.paddings)]
        self.items = self.queries.items  # queries that are attended for, ascending

    def gather(self, outputs: List[Tensor]) -> Tensor:
        """Returns the results [len(items), ...] from those of the blocks, each [b, w_q, ...]."""
        return torch.cat([output.flatten(0, 1) for output in outputs]).index_select(0, self.queries.slots)

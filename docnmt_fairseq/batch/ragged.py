"""Rows of different lengths, packed one after another."""

from dataclasses import dataclass
from typing import Optional, Tuple

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, init=False, eq=False)
class Ragged:
    """Rows of different lengths stored one after another: tokens in sentences, sentences in documents, ...

    Sizes are numpy arrays, so that no shape ever has to be read back from a GPU.

    Attributes:
        lengths: [rows] items in each row, all at least 1.
        offsets: [rows + 1] first item of each row, and their total.
        rows, total, longest: the number of rows and of items, and the length of the longest row.
        item_row, item_column: [total] the row of every item, and its place in it.
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
        """Lays out the rows.

        Args:
            lengths: see above.
            device: of the index tensors.

        Raises:
            ValueError: an empty row.
        """
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.size and lengths.min() < 1:
            raise ValueError("every row needs at least one item")
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
        """The device of the index tensors."""
        return self.item_row.device

    def index(self, array: np.ndarray) -> Tensor:
        """An array as a tensor where the others are."""
        return index_tensor(array, self.device)

    def pack(self, padded: Tensor) -> Tensor:
        """Packed [total, ...] from right-padded [rows, width, ...]."""
        return padded.flatten(0, 1).index_select(0, self.item_row * padded.size(1) + self.item_column)

    def pad(self, packed: Tensor, value: float = 0.0, width: Optional[int] = None) -> Tensor:
        """Right-padded [rows, width or longest, ...] from [total, ...]."""
        width = width or self.longest
        padded = packed.new_full((self.rows * width, *packed.shape[1:]), value)
        return padded.index_copy(0, self.item_row * width + self.item_column, packed).unflatten(0, (self.rows, width))

    def padding_mask(self) -> Tensor:
        """Which places of right-padded rows are padding, [rows, longest], True there."""
        return torch.arange(self.longest, device=self.device) >= self.lengths_tensor[:, None]

    def sum(self, packed: Tensor) -> Tensor:
        """The sum of every row's items, [rows, ...] from [total, ...]; added up in float32 at least."""
        return self._sum(packed).to(packed.dtype)

    def _sum(self, packed: Tensor) -> Tensor:
        packed = packed.to(torch.promote_types(packed.dtype, torch.float32))
        return packed.new_zeros(self.rows, *packed.shape[1:]).index_add(0, self.item_row, packed)

    def mean(self, packed: Tensor) -> Tensor:
        """The mean of every row's items, [rows, d] from [total, d]; added up in float32 at least."""
        sums = self._sum(packed)
        return (sums / self.lengths_tensor[:, None].to(sums.dtype)).to(packed.dtype)

    def softmax(self, scores: Tensor) -> Tensor:
        """The softmax over every row's items, [total, k] from [total, k], in float32 at least."""
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        index = self.item_row[:, None].expand_as(scores)
        least = scores.new_full((self.rows, scores.size(1)), -torch.inf)
        highest = least.scatter_reduce(0, index, scores.detach(), "amax")
        weights = (scores - highest.index_select(0, self.item_row)).exp()
        return weights / self.sum(weights).index_select(0, self.item_row)

    def items_of(self, rows: np.ndarray) -> np.ndarray:
        """The item numbers of the given rows, one row after another, [their items in all]."""
        lengths = self.lengths[rows]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self.offsets[rows] - before, lengths) + np.arange(int(lengths.sum()))

    def block(self, rows: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """The item numbers [b, width] of the given rows padded together, and the padding [b, width], True there.

        Padding repeats a row's last item: a real one, so that gathering is safe; whoever attends must mask it.
        """
        lengths = self.lengths[rows][:, None]
        column = np.arange(int(lengths.max()))
        return self.offsets[rows][:, None] + np.minimum(column, lengths - 1), column >= lengths


def set_fields(one: object, **values: object) -> None:
    """Sets the fields of a frozen dataclass that has a constructor of its own; that alone calls it."""
    for name, value in values.items():
        object.__setattr__(one, name, value)


def index_tensor(array: np.ndarray, device: torch.device = torch.device("cpu")) -> Tensor:
    """An array as a tensor on a device."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)

"""In which order a recurrent cell takes packed rows: :class:`StepOrder`."""

from typing import Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.ragged import Ragged


class StepOrder:
    """Rows taken step by step: the first items of all rows, then the second ones, …, the longest row first.

    So the rows that go on are always the first ones, and there is no padding.

    Args:
        rows: the items.
        among: [R] row numbers, the rows to take; None: all.
        reverse: whether each row is taken from its last item to its first.

    Attributes:
        rows: [R] row numbers in their order here.
        sizes: [T] how many rows have a step t.
        items: [N] the item at every place, those of step 0 first.
        places: [N] the place of every item, those of rows left out have none.
    """

    def __init__(self, rows: Ragged, among: Optional[np.ndarray] = None, reverse: bool = False):
        among = np.arange(rows.rows) if among is None else among
        self.rows = among[np.argsort(-rows.lengths[among], kind="stable")]
        lengths = rows.lengths[self.rows]
        column = np.arange(int(lengths.max(initial=0)))[:, None]  # [T, 1]
        taken = column < lengths  # [T, R]
        self.sizes = taken.sum(1).tolist()
        place = lengths - 1 - column if reverse else np.broadcast_to(column, taken.shape)
        items = (rows.offsets[self.rows] + place)[taken]
        places = np.zeros(rows.total, dtype=np.int64)
        places[items] = np.arange(len(items))
        self.items, self.places, self.row_index = (rows._tensor(array) for array in (items, places, self.rows))

    @property
    def batch_sizes(self) -> Tensor:
        """Returns the sizes as PyTorch's ``PackedSequence`` has them, [T] on the CPU."""
        return torch.tensor(self.sizes, dtype=torch.int64)

    @property
    def before(self) -> Tensor:
        """Returns the place one step before each, of all places from step 1 on, [N − R]."""
        starts = np.cumsum([0, *self.sizes[:-1]])
        ranges = [np.arange(start, start + size) for start, size in zip(starts, self.sizes[1:])]
        return torch.as_tensor(np.concatenate([np.zeros(0, dtype=np.int64), *ranges]), device=self.items.device)

"""Order in which a recurrent cell processes packed rows: :class:`StepOrder`."""

from dataclasses import dataclass
from typing import List, Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged, set_fields


@dataclass(frozen=True, init=False, eq=False)
class StepOrder:
    """Rows step by step: the first items of all rows, then the second ones, …, the longest row first.

    The rows that continue are always the first ones, so there is no padding.

    Attributes:
        rows: [R] row numbers in this order.
        sizes: [T] number of rows that have a step t.
        items: [N] item at every position, those of step 0 first.
        places: [N] position of every item; undefined for items of rows left out.
        row_index: [R] the row numbers as a tensor.
        before: [N − R] for each position from step 1 on, the position of the same row's previous step.
    """

    rows: np.ndarray
    sizes: List[int]
    items: Tensor
    places: Tensor
    row_index: Tensor
    before: Tensor

    def __init__(self, rows: Ragged, among: Optional[np.ndarray] = None, reverse: bool = False):
        """Orders the rows.

        Args:
            rows: the items.
            among: [R] numbers of the rows to process; None: all.
            reverse: process each row from its last item to its first.
        """
        among = np.arange(rows.rows) if among is None else among
        order = among[np.argsort(-rows.lengths[among], kind="stable")]
        lengths = rows.lengths[order]
        column = np.arange(int(lengths.max(initial=0)))[:, None]  # [T, 1]
        taken = column < lengths  # [T, R]
        sizes = taken.sum(1).tolist()
        place = lengths - 1 - column if reverse else np.broadcast_to(column, taken.shape)
        items = (rows.offsets[order] + place)[taken]
        places = np.zeros(rows.total, dtype=np.int64)
        places[items] = np.arange(len(items))
        starts = np.cumsum([0, *sizes[:-1]])
        ranges = [np.arange(start, start + size) for start, size in zip(starts, sizes[1:])]
        before = np.concatenate([np.zeros(0, dtype=np.int64), *ranges])
        set_fields(
            self,
            rows=order,
            sizes=sizes,
            items=rows.index(items),
            places=rows.index(places),
            row_index=rows.index(order),
            before=rows.index(before),
        )

    @property
    def batch_sizes(self) -> Tensor:
        """The sizes in the format of PyTorch's ``PackedSequence``, [T] on the CPU."""
        return torch.tensor(self.sizes, dtype=torch.int64)


@dataclass(frozen=True)
class StepsOfTokens(PlanKey[StepOrder]):
    """Steps over the tokens of each sentence, forwards or in reverse."""

    reverse: bool = False

    def make(self, layout: DocumentLayout) -> StepOrder:
        """See :class:`PlanKey`."""
        return StepOrder(layout.tokens, reverse=self.reverse)


@dataclass(frozen=True)
class StepsOfTargets(PlanKey[StepOrder]):
    """Steps over the target tokens of each sentence."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> StepOrder:
        """See :class:`PlanKey`."""
        return StepOrder(layout.target_tokens)

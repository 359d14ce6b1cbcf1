"""Pairs of a token and a kept sentence by sentence and head, as work for a GPU; nothing is read back from it."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    """Pairs (token, head, kept sentence), grouped: the tokens that keep a sentence attend to it together.

    The pair of place j of head h of the m-th token that selects has number (m·H + h)·t + j; group g = sentence·H + head
    has the pairs order[start[g]:start[g + 1]], the items first[g], …, first[g + 1] − 1 of up to ``item`` pairs each.
    How many items there are only the GPU knows; the grid has as many as there can be, and those left over do nothing.

    Attributes:
        order: [P] int32, numbers of the pairs by group; places that hold no sentence come last.
        start: [G + 1] int32, the first pair of every group, and the end of the last.
        first: [G + 1] int32, the first item of every group, and their number.
        group: [items] int32, the group of every item, G of those left over.
        slot: [G] int32, where the partial sums of a group's items begin; −1: it is one item at most, and needs none.
        slots: the most partial sums that there can be.
        item: the most pairs of an item.
    """

    order: Tensor
    start: Tensor
    first: Tensor
    group: Tensor
    slot: Tensor
    slots: int
    item: int

    @classmethod
    def of(cls, sentence: Tensor, sentences: int, item: int, split: bool) -> "Pairs":
        """The pairs of a selection.

        Args:
            sentence: [M, H, t] rows of the kept sentences, −1: none.
            sentences: R, of the batch.
            item: the most pairs of an item.
            split: whether a group can have more than that.
        """
        heads, device = sentence.size(1), sentence.device
        groups, pairs = sentences * heads, sentence.numel()
        head = torch.arange(heads, device=device, dtype=torch.int32)[:, None]
        group = torch.where(sentence < 0, groups, sentence * heads + head).to(torch.int32).flatten()
        by_group, order = torch.sort(group, stable=True)
        start = torch.searchsorted(by_group, torch.arange(groups + 1, device=device, dtype=torch.int32), out_int32=True)
        items = (start.diff() + (item - 1)).div(item, rounding_mode="floor")
        ends = items.cumsum(0, dtype=torch.int32)
        number = torch.arange(min(groups, pairs) + pairs // item, device=device, dtype=torch.int32)
        is_split = items > 1
        parts = items * is_split
        slot = (parts.cumsum(0, dtype=torch.int32) - parts).masked_fill(~is_split, -1)
        return cls(
            order=order.to(torch.int32),
            start=start,
            first=torch.cat([ends.new_zeros(1), ends]),
            group=torch.searchsorted(ends, number, right=True, out_int32=True),
            slot=slot.to(torch.int32),
            slots=2 * (pairs // item) if split else 0,  # of n pairs, more than one item's: ⌈n / item⌉ < 2n / item
            item=item,
        )

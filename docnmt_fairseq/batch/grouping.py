"""Rows of similar length computed together: as little padding as the price of one more group is worth."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator, List, Optional

import numpy as np
import torch

# A group costs its launches. Priced by the batch's real work, there are some 15 to 40 groups, whatever its size.
PRICE_SHARE = 1 / 128
LEAST_PRICE = 512.0  # pairs of a query and a key
# A GPU computes more than so many pairs while the CPU starts the operations of one group. They bound the padding, too.
LEAST_PRICE_OF_GPUS = 2.0**18

_on_gpu: "ContextVar[bool]" = ContextVar("_on_gpu", default=False)


@contextmanager
def computed_on(device: torch.device) -> Iterator[None]:
    """Inside, groups are made for a device; the CPU, where all are made, changes nothing."""
    before = _on_gpu.set(_on_gpu.get() or device.type != "cpu")
    try:
        yield
    finally:
        _on_gpu.reset(before)


def cheapest_groups(lengths: np.ndarray, area: np.ndarray, price: float) -> List[np.ndarray]:
    """Places in ``lengths`` in groups, shortest first, whose padded areas and prices are least together.

    A group of b rows costs b · area[its longest row] + price. Exact, by dynamic programming over distinct lengths.

    Args:
        lengths: [rows].
        area: [longest + 1] what a row padded to a length costs; never falling.
        price: of a group, in the same unit.
    """
    order = np.argsort(lengths, kind="stable")
    distinct, first = np.unique(lengths[order], return_index=True)
    before = np.append(first, len(order))  # rows shorter than each distinct length, at last all
    least, start_of = np.zeros(len(before)), np.zeros(len(before), dtype=np.int64)
    for end, widest in enumerate(distinct, start=1):
        costs = least[:end] + (before[end] - before[:end]) * area[widest]
        start_of[end] = costs.argmin()
        least[end] = costs[start_of[end]] + price
    groups, end = [], len(distinct)
    while end:
        groups.append(order[before[start_of[end]] : before[end]])
        end = start_of[end]
    return groups[::-1]


def attention_groups(queries: np.ndarray, keys: Optional[np.ndarray] = None) -> List[np.ndarray]:
    """Rows in groups that attend together, of similar numbers of queries and, within those, of keys.

    Args:
        queries: [rows] queries of each row.
        keys: [rows] keys of each row; None: as many as queries.
    """
    pairs = float((queries * (queries if keys is None else keys)).sum())
    price = max(LEAST_PRICE_OF_GPUS if _on_gpu.get() else LEAST_PRICE, pairs * PRICE_SHARE)
    width = np.arange(int(queries.max(initial=0)) + 1, dtype=np.float64)
    if keys is None:
        return cheapest_groups(queries, width**2, price)
    keys_a_query = keys.sum() / max(1, queries.sum())
    groups = []
    for group in cheapest_groups(queries, width**2 * keys_a_query, price):
        area = np.arange(int(keys[group].max()) + 1) * float(queries[group].max())
        groups += [group[places] for places in cheapest_groups(keys[group], area, price)]
    return groups

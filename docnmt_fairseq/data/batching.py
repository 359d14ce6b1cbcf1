"""Batches of documents packed to their real cost: tokens, not rows times the longest row."""

import logging
from typing import List, Optional

import numpy as np
from fairseq.data import FairseqDataset

from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


def check_some_left(kept: np.ndarray, dataset: FairseqDataset, name: str) -> None:
    """Looks that something is left of a data-bin's split without the sentences that are too long for the model.

    Args:
        kept: what is left.
        dataset: the split; typed text, which has no targets, goes on.
        name: of the dataset, for messages.

    Raises:
        InputError: nothing is; fairseq would fail at that.
    """
    if not len(kept) and len(dataset) and getattr(dataset, "tgt", None) is not None:
        raise InputError(
            f"{name}: every sentence is too long and left out; raise --max-source-positions and --max-target-positions"
        )


def pack_batches(
    order: np.ndarray, costs: np.ndarray, max_tokens: Optional[int], max_pieces: Optional[int]
) -> List[np.ndarray]:
    """Batches of pieces, in order; every piece is in exactly one, also the last few.

    Args:
        order: pieces in the order in which to take them.
        costs: [P, k] tokens of every piece (source with context, target); no column's sum exceeds ``max_tokens``.
        max_tokens: of a batch; a piece that costs more is a batch by itself.
        max_pieces: of a batch, None: no limit.
    """
    total = np.concatenate([np.zeros((1, costs.shape[1]), dtype=np.int64), np.cumsum(costs[order], axis=0)])
    batches, start = [], 0
    while start < len(order):
        end = len(order)
        if max_tokens:
            fits = (np.searchsorted(column, column[start] + max_tokens, side="right") - 1 for column in total.T)
            end = max(min(fits), start + 1)
        if max_pieces:
            end = min(end, start + max_pieces)
        batches.append(order[start:end])
        start = end
    too_long = int((costs[order].max(axis=1) > max_tokens).sum()) if max_tokens else 0
    if too_long:
        logger.warning(
            f"{too_long:,} documents cost more than --max-tokens {max_tokens} and are batches by themselves; where "
            "memory does not allow that, lower --max-document-tokens or --max-document-sentences"
        )
    return batches

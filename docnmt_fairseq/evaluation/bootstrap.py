"""Documents drawn with replacement, and the intervals of means over a test set that come of it."""

from typing import Hashable, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError

Interval = Optional[Tuple[float, float]]  # None where there is none: of a single document


def check_bootstrap(samples: int, seed: int) -> None:
    """Raises :class:`InputError` for options out of range."""
    if samples < 1:
        raise InputError(f"--samples {samples}: at least 1")
    if seed < 0:
        raise InputError(f"--seed {seed}: at least 0")


def draw_documents(documents: int, samples: int, seed: int) -> np.ndarray:
    """How often each document is drawn where as many are drawn as there are, [samples, documents]."""
    return np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=samples)


def interval_of_mean(
    totals: Sequence[float],
    documents: Sequence[Hashable],
    samples: int,
    seed: int,
    counts: Optional[Sequence[float]] = None,
) -> Interval:
    """The 2.5th and 97.5th percentile of Σ totals / Σ counts over documents drawn with replacement.

    What is of one document is drawn together: it depends on the same context. Documents are numbered in the order in
    which they first come, so the same data and seed give the same interval whatever documents are called.

    Args:
        totals: [n] of items.
        documents: [n] what document each is of.
        samples: how often as many documents are drawn as there are.
        seed: of the draws.
        counts: [n] of the items, None: one each.

    Returns:
        Both; None if all items are of one document.
    """
    known = {document: number for number, document in enumerate(dict.fromkeys(documents))}
    if len(known) < 2:  # drawn again and again, it is always the same, which looks sure of what nobody knows
        return None
    numbers = np.array([known[document] for document in documents])
    sums = np.bincount(numbers, weights=np.asarray(totals, dtype=float))  # [documents]
    sizes = np.bincount(numbers, weights=None if counts is None else np.asarray(counts, dtype=float))
    draws = draw_documents(len(known), samples, seed)
    low, high = np.percentile((draws @ sums) / (draws @ sizes), [2.5, 97.5])
    return float(low), float(high)


def interval_text(interval: Interval, form: str) -> str:
    """An interval as a cell of a table.

    Args:
        interval: from :func:`interval_of_mean`.
        form: of its ends, as :meth:`str.format` takes it.
    """
    return "(one document)" if interval is None else " to ".join(map(form.format, interval))

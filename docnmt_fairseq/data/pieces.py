"""Consecutive pieces of documents that are too long for one batch."""

from dataclasses import dataclass
from typing import Optional

import numpy as np


@dataclass(frozen=True)
class PieceLimits:
    """How much of a document a piece holds.

    Attributes:
        sentences: at most; 0: no limit.
        tokens: at most; 0: no limit.
        before, after: sentences of the same document that are encoded besides, as context.
    """

    sentences: int = 0
    tokens: int = 0
    before: int = 0
    after: int = 0


@dataclass(frozen=True)
class Pieces:
    """Pieces of documents: sentences start..end-1 are translated, those from context_start to context_end-1 encoded.

    Attributes (all [P]):
        document: the document.
        start, end: its sentences.
        context_start, context_end: with the overlap, within the same document.
    """

    document: np.ndarray
    start: np.ndarray
    end: np.ndarray
    context_start: np.ndarray
    context_end: np.ndarray

    def __len__(self) -> int:
        return len(self.document)


def running_total(sizes: np.ndarray) -> np.ndarray:
    """[0, sizes[0], sizes[0] + sizes[1], …], [S + 1] from [S], without a copy in between."""
    total = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=total[1:])
    return total


def cut(documents: np.ndarray, tokens: np.ndarray, limits: PieceLimits, weights: Optional[np.ndarray] = None) -> Pieces:
    """The pieces of all documents; no sentence is in two pieces, none is left out.

    A long document is cut into the fewest pieces that keep to the limits, of about the same weight or number of
    sentences. One sentence longer than the limit of tokens is a piece by itself.

    Args:
        documents: [D + 1] first sentence of every document, and their total.
        tokens: [S] cost of every sentence.
        limits: of a piece.
        weights: [S] of which pieces of a document have about the same; None: ``tokens``.
    """
    total = running_total(tokens)
    even = total if weights is None else running_total(weights)
    lengths = np.diff(documents)
    cost = total[documents[1:]] - total[documents[:-1]]
    long = np.zeros(len(lengths), dtype=bool)
    if limits.sentences:
        long |= lengths > limits.sentences
    if limits.tokens:
        long |= cost > limits.tokens
    starts = [documents[:-1][~long]]
    for number in np.flatnonzero(long):  # few: whole documents fit
        starts.append(_cut_one(documents[number], documents[number + 1], total, even, limits))
    start = np.sort(np.concatenate(starts).astype(np.int64))
    end = np.append(start[1:], documents[-1])
    document = np.searchsorted(documents, start, side="right") - 1
    context_start = np.maximum(start - limits.before, documents[document])
    context_end = np.minimum(end + limits.after, documents[document + 1])
    return Pieces(document, start, end, context_start, context_end)


def _cut_one(first: int, last: int, total: np.ndarray, even: np.ndarray, limits: PieceLimits) -> np.ndarray:
    """The first sentences of the pieces of one document: the fewest, then as even as the limits allow."""
    greedy = [first]
    while greedy[-1] < last:
        greedy.append(_furthest(greedy[-1], last, total, limits))
    pieces = len(greedy) - 1
    share = np.arange(1, pieces) / pieces
    for measure in (even[first : last + 1] - even[first], np.arange(last - first + 1)):  # even weights, or sentences
        inner = first + np.searchsorted(measure, share * measure[-1])
        starts = np.concatenate([[first], inner, [last]])
        furthest = [_furthest(start, last, total, limits) for start in starts[:-1]]
        if (starts[1:] <= furthest).all():  # then none is empty: fewer pieces would do, and these are the fewest
            return starts[:-1]
    return np.array(greedy[:-1])


def _furthest(start: int, last: int, total: np.ndarray, limits: PieceLimits) -> int:
    """Where a piece that begins at ``start`` must end at the latest."""
    end = min(last, start + limits.sentences) if limits.sentences else last
    if limits.tokens:
        end = min(end, np.searchsorted(total, total[start] + limits.tokens, side="right") - 1)
    return max(int(end), start + 1)

"""Chunks of long documents, batches of chunks packed by their number of tokens, and context dropout of chunks."""

import logging
from dataclasses import dataclass
from enum import Enum
from typing import List, Optional, Sequence, Tuple

import numpy as np

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChunkLimits:
    """Size limits of a chunk.

    Attributes:
        sentences: maximum number of sentences; 0: no limit.
        tokens: maximum number of tokens; 0: no limit.
        before, after: sentences of the same document before and after the chunk that are encoded as context.
    """

    sentences: int = 0
    tokens: int = 0
    before: int = 0
    after: int = 0


@dataclass(frozen=True)
class Chunks:
    """Chunks of documents: sentences start..end-1 are translated, context_start..context_end-1 are encoded.

    Attributes (all [P]):
        document: document of the chunk.
        start, end: its sentences.
        context_start, context_end: its sentences with the overlap, within the same document.
    """

    document: np.ndarray
    start: np.ndarray
    end: np.ndarray
    context_start: np.ndarray
    context_end: np.ndarray

    def __len__(self) -> int:
        return len(self.document)


def running_total(sizes: np.ndarray) -> np.ndarray:
    """Returns [0, sizes[0], sizes[0] + sizes[1], …], [S + 1] from [S]."""
    total = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=total[1:])
    return total


def chunk_documents(
    documents: np.ndarray, tokens: np.ndarray, limits: ChunkLimits, weights: Optional[np.ndarray] = None
) -> Chunks:
    """Divides documents into chunks; every sentence is in exactly one.

    A long document is divided into the fewest chunks within the limits, of similar weight or number of sentences. A
    sentence that exceeds the limit of tokens is a chunk.

    Args:
        documents: [D + 1] first sentence of every document, and the number of sentences.
        tokens: [S] tokens of every sentence.
        limits: limits of a chunk.
        weights: [S] weights that the chunks of a document share evenly; None: ``tokens``.
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
    for number in np.flatnonzero(long):
        starts.append(_chunk_starts(documents[number], documents[number + 1], total, even, limits))
    start = np.sort(np.concatenate(starts).astype(np.int64))
    end = np.append(start[1:], documents[-1])
    document = np.searchsorted(documents, start, side="right") - 1
    context_start = np.maximum(start - limits.before, documents[document])
    context_end = np.minimum(end + limits.after, documents[document + 1])
    return Chunks(document, start, end, context_start, context_end)


def _chunk_starts(first: int, last: int, total: np.ndarray, even: np.ndarray, limits: ChunkLimits) -> np.ndarray:
    """Returns the first sentences of the chunks of one document: the fewest, then as even as the limits allow."""
    greedy = [first]
    while greedy[-1] < last:
        greedy.append(_furthest_end(greedy[-1], last, total, limits))
    chunks = len(greedy) - 1
    share = np.arange(1, chunks) / chunks
    for measure in (even[first : last + 1] - even[first], np.arange(last - first + 1)):  # even weights, or sentences
        inner = first + np.searchsorted(measure, share * measure[-1])
        starts = np.concatenate([[first], inner, [last]])
        furthest = [_furthest_end(start, last, total, limits) for start in starts[:-1]]
        if (starts[1:] <= furthest).all():  # no chunk is empty: the number of chunks is minimal
            return starts[:-1]
    return np.array(greedy[:-1])


def _furthest_end(start: int, last: int, total: np.ndarray, limits: ChunkLimits) -> int:
    """Returns the last possible end of a chunk that begins at ``start``."""
    end = min(last, start + limits.sentences) if limits.sentences else last
    if limits.tokens:
        end = min(end, np.searchsorted(total, total[start] + limits.tokens, side="right") - 1)
    return max(int(end), start + 1)


def pack_batches(
    order: np.ndarray, costs: np.ndarray, max_tokens: Optional[int], max_chunks: Optional[int]
) -> List[np.ndarray]:
    """Packs chunks into batches, in order; every chunk is in exactly one.

    Args:
        order: chunks in the order in which they are packed.
        costs: [P, k] tokens of every chunk (source with context, target); no column's sum exceeds ``max_tokens``.
        max_tokens: limit of a batch; a chunk that exceeds it is a batch.
        max_chunks: limit of a batch, None: no limit.
    """
    total = np.concatenate([np.zeros((1, costs.shape[1]), dtype=np.int64), np.cumsum(costs[order], axis=0)])
    batches, start = [], 0
    while start < len(order):
        end = len(order)
        if max_tokens:
            fits = (np.searchsorted(column, column[start] + max_tokens, side="right") - 1 for column in total.T)
            end = max(min(fits), start + 1)
        if max_chunks:
            end = min(end, start + max_chunks)
        batches.append(order[start:end])
        start = end
    too_long = int((costs[order].max(axis=1) > max_tokens).sum()) if max_tokens else 0
    if too_long:
        logger.warning(
            f"{too_long:,} documents exceed --max-tokens {max_tokens} and are separate batches; if memory is short, "
            "lower --max-document-tokens or --max-document-sentences"
        )
    return batches


# --- Context dropout ---


class Hidden(Enum):
    """Context that is hidden from the sentences of a document; false if nothing is hidden."""

    NOTHING = "nothing"
    SOURCE = "source"  # other source sentences; previous translations are visible
    ALL = "all"

    def __bool__(self) -> bool:
        return self is not Hidden.NOTHING


@dataclass(frozen=True)
class ContextDropout:
    """Draws what is hidden of every chunk of a document in every epoch.

    Attributes:
        everything: probability that sentences see only themselves.
        source: probability that they see only the previous translations, at most 1 - ``everything``.
        seed: seed of the draws.
    """

    everything: float = 0.0
    source: float = 0.0
    seed: int = 1

    def draw(self, epoch: int, number: int) -> Hidden:
        """Returns what is hidden of a chunk in an epoch."""
        if not self.everything + self.source:
            return Hidden.NOTHING
        drawn = np.random.default_rng((self.seed, epoch, number)).random()
        if drawn < self.everything:
            return Hidden.ALL
        return Hidden.SOURCE if drawn < self.everything + self.source else Hidden.NOTHING


def target_documents(chunks: Sequence[Tuple[Hidden, int]]) -> Optional[np.ndarray]:
    """Returns the document of every sentence's target, [S]; targets of one document see the previous ones.

    Args:
        chunks: what is hidden of each chunk, and its number of translated sentences.

    Returns:
        ascending numbers; None if targets and sources are in the same documents.
    """
    if all(hidden is not Hidden.SOURCE for hidden, _ in chunks):
        return None
    lengths = np.concatenate([np.ones(rows, int) if hidden is Hidden.ALL else [rows] for hidden, rows in chunks])
    return np.repeat(np.arange(len(lengths)), lengths.astype(int))

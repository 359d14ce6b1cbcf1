"""For each sentence, the earlier ones of its document that are most similar to it."""

from itertools import pairwise
from typing import Iterator, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.data.index import DocumentIndex, Lines
from docnmt_fairseq.embedding.model import SentenceEmbedding

FURTHEST = np.iinfo(np.int16).max  # sentences back, the most that can be written
ROWS = 512  # sentences of a document whose similarities are computed together
TOGETHER = 10_000  # sentences whose vectors are made together
STEP = 2.0**-20  # similarities closer than this are equal: sums come out a little differently by place


def most_similar(vectors: np.ndarray, most: int) -> np.ndarray:
    """How many sentences back the most similar ones stand, [n, most] int16, most similar first, 0: none.

    Similarity is the cosine, among equals the nearest first; at most ``FURTHEST`` sentences back.

    Args:
        vectors: [n, d] of the sentences of a document, in order.
        most: columns.
    """
    n = len(vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float64)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    found = np.zeros((n, most), dtype=np.int16)
    for start in range(0, n, ROWS):
        end = min(start + ROWS, n)
        first = max(0, start - FURTHEST)
        back = np.arange(start, end)[:, None] - np.arange(first, end)  # [rows, columns]
        likeness = np.rint(unit[start:end] @ unit[first:end].T / STEP)
        # Likeness first, then nearness, in one number: no two of a row are equal.
        key = np.where((back > 0) & (back <= FURTHEST), likeness * (FURTHEST + 1) - back, -np.inf)
        columns = min(most, key.shape[1])
        chosen = np.argpartition(-key, columns - 1, axis=1)[:, :columns]
        key = np.take_along_axis(key, chosen, axis=1)
        order = np.argsort(-key, axis=1)
        offsets = np.where(key > -np.inf, np.take_along_axis(back, chosen, axis=1), 0)
        found[start:end, :columns] = np.take_along_axis(offsets, order, axis=1)
    return found


def groups(documents: np.ndarray) -> Iterator[Tuple[int, int]]:
    """Yields runs of documents of about ``TOGETHER`` sentences, as their first number and the one behind their last."""
    start = 0
    while start < len(documents) - 1:
        end = max(start + 1, int(np.searchsorted(documents, documents[start] + TOGETHER, side="right")) - 1)
        yield start, end
        start = end


def fill(
    found: np.ndarray,
    embedding: SentenceEmbedding,
    lines: Lines,
    index: DocumentIndex,
    symbols: Sequence[str],
    language_token: Optional[int] = None,
) -> int:
    """Puts what :func:`most_similar` gives for each document into the rows of its sentences.

    Args:
        found: [lines, most] int16, zeros.
        embedding: of the sentences.
        lines: of the corpus.
        index: where its documents begin.
        symbols: of the dictionary.
        language_token: what sentences begin with that is not of their text; None: there is none.

    Returns:
        the number of tokens that have a vector.
    """
    words_of, known = embedding.vocabulary.of_tokens(symbols), 0
    for first, last in groups(index.documents):
        starts = index.documents[first : last + 1] - index.documents[first]
        items = index.items[index.documents[first] : index.documents[last]]
        sentences = [lines[int(item)].numpy() for item in items]
        words = words_of([tokens[1:] if tokens[0] == language_token else tokens for tokens in sentences])
        known += int((words.ids < len(embedding.words)).sum())
        vectors = embedding.embed(words)
        for start, end in pairwise(starts):
            found[items[start:end]] = most_similar(vectors[start:end], found.shape[1])
    return known


def neighbours_in_memory(
    embedding: SentenceEmbedding,
    lines: Lines,
    index: DocumentIndex,
    symbols: Sequence[str],
    language_token: Optional[int] = None,
) -> np.ndarray:
    """[lines, most] int16 as :func:`fill` makes it."""
    found = np.zeros((len(lines), embedding.settings.neighbours), dtype=np.int16)
    fill(found, embedding, lines, index, symbols, language_token)
    return found

"""Similar sentences: for each sentence, the most similar previous ones of its document; files next to data-bins."""

import logging
import re
from itertools import pairwise
from pathlib import Path
from typing import Dict, Iterator, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.corpus.data_bin import read_language_tokens
from docnmt_fairseq.corpus.dictionaries import dictionary_errors
from docnmt_fairseq.corpus.files import npy_on_disk
from docnmt_fairseq.corpus.prepared import data_bin
from docnmt_fairseq.data.index import DocumentIndex, Lines, Marks
from docnmt_fairseq.data.similar import similar_file, vectors_file
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.errors import InputError

MAX_DISTANCE = np.iinfo(np.int16).max  # in sentences, limited by the file format
ROWS = 512  # sentences of a document whose similarities are computed together
GROUP = 10_000  # sentences whose vectors are computed together
RESOLUTION = 2.0**-20  # smaller differences of similarities are rounding errors

logger = logging.getLogger(__name__)


def most_similar(vectors: np.ndarray, most: int) -> np.ndarray:
    """Returns the distances to the most similar previous sentences, [n, most] int16, most similar first, 0: none.

    Similarity is the cosine; of equally similar sentences the nearest comes first.

    Args:
        vectors: [n, d], of the sentences of a document.
        most: number of columns.
    """
    n = len(vectors)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float64)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    found = np.zeros((n, most), dtype=np.int16)
    for start in range(0, n, ROWS):
        end = min(start + ROWS, n)
        first = max(0, start - MAX_DISTANCE)
        distance = np.arange(start, end)[:, None] - np.arange(first, end)  # [rows, columns]
        similarity = np.rint(unit[start:end] @ unit[first:end].T / RESOLUTION)
        # Similarity, then nearness, in one number, so that all of a row differ.
        valid = (distance > 0) & (distance <= MAX_DISTANCE)
        key = np.where(valid, similarity * (MAX_DISTANCE + 1) - distance, -np.inf)
        columns = min(most, key.shape[1])
        chosen = np.argpartition(-key, columns - 1, axis=1)[:, :columns]
        key = np.take_along_axis(key, chosen, axis=1)
        order = np.argsort(-key, axis=1)
        offsets = np.where(key > -np.inf, np.take_along_axis(distance, chosen, axis=1), 0)
        found[start:end, :columns] = np.take_along_axis(offsets, order, axis=1)
    return found


def _groups(documents: np.ndarray) -> Iterator[Tuple[int, int]]:
    """Yields runs of documents of about ``GROUP`` sentences, as the first document and the end."""
    start = 0
    while start < len(documents) - 1:
        end = max(start + 1, int(np.searchsorted(documents, documents[start] + GROUP, side="right")) - 1)
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
    """Writes the result of :func:`most_similar` for each document to the rows of its sentences.

    Args:
        found: [lines, most] int16, zeros.
        embedding: sentence vectors.
        lines: corpus.
        index: documents of the corpus.
        symbols: symbols of the dictionary.
        language_token: token at the start of all sentences, if any.

    Returns:
        the number of tokens that have a vector.
    """
    words_of, known = embedding.vocabulary.of_tokens(symbols), 0
    for first, last in _groups(index.documents):
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
    """Returns the table of :func:`fill`, [lines, most] int16."""
    found = np.zeros((len(lines), embedding.settings.neighbours), dtype=np.int16)
    fill(found, embedding, lines, index, symbols, language_token)
    return found


def write_neighbours(
    folder: Path, embedding: SentenceEmbedding, language: Optional[str] = None, unmarked: str = "document"
) -> int:
    """Writes the similar sentences of every split of a data-bin, and the sentence vectors.

    Args:
        folder: data-bin, or output of ``docnmt prepare``.
        embedding: sentence vectors with the number of ``neighbours``.
        language: language of the sentences; None: the source.
        unmarked: meaning of a file without empty lines, see :meth:`DocumentIndex.build`.

    Returns:
        the number of sentences.

    Raises:
        InputError: no such data-bin or dictionary, no known word, or a file cannot be written.
    """
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import infer_dataset_impl, make_dataset

    folder, total = data_bin(folder), 0
    sides, tokens = _split_prefixes(folder, language), read_language_tokens(folder)
    for prefix, side in sides.items():
        file = folder / f"dict.{side}.txt"
        if not file.is_file():
            raise InputError(f"{folder}: lacks dict.{side}.txt")
        with dictionary_errors(file):
            dictionary = Dictionary.load(str(file))
        kind = "mmap" if infer_dataset_impl(str(prefix)) == "mmap" else "lazy"
        lines = make_dataset(str(prefix), kind, fix_lua_indexing=True)
        marks = Marks.read(lines, paragraph_symbol(dictionary))
        index = DocumentIndex.build(marks, str(prefix), unmarked)
        with npy_on_disk(similar_file(prefix), (len(lines), embedding.settings.neighbours), np.int16) as found:
            token = dictionary.indices.get(tokens.get(side))
            if not fill(found, embedding, lines, index, dictionary.symbols, token):
                raise InputError(f"{prefix}: no word has a vector; fit the model on the same (sub)words")
        logger.info(f"{similar_file(prefix)}: {len(index.items):,} sentences in {len(index):,} documents")
        total += len(index.items)
    for side in sorted(set(sides.values())):
        embedding.save(vectors_file(folder, side))
    return total


def _split_prefixes(folder: Path, language: Optional[str]) -> Dict[Path, str]:
    """Returns the file prefixes of the splits in one language (None: the source), and the language of each."""
    found = {}
    for file in sorted(folder.glob("*.idx")):
        match = re.fullmatch(r"[^.]+\.([^.]+)\.([^.]+)\.idx", file.name)
        if match and (match[2] == language or (language is None and match[1].startswith(f"{match[2]}-"))):
            found[file.with_suffix("")] = match[2]
    if not found:
        wanted = f"SPLIT.SOURCE-TARGET.{language or 'SOURCE'}.idx"
        raise InputError(f"{folder}: no {wanted}; give a data-bin, or the output of docnmt prepare")
    return found

"""Similar sentences: for each sentence, the most similar previous ones of its document; files next to data-bins."""

import logging
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

import numpy as np
from tqdm import tqdm

from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.corpus.data_bin import dictionary_errors, read_language_tokens
from docnmt_fairseq.corpus.files import npy_on_disk
from docnmt_fairseq.corpus.prepared import data_bin, languages_of
from docnmt_fairseq.data.index import DocumentIndex, Lines, Marks
from docnmt_fairseq.data.selected_context import how_to_make, read_similar, similar_file, vectors_file
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.errors import InputError

MAX_DISTANCE = np.iinfo(np.int16).max  # in sentences, limited by the file format
ROWS = 512  # sentences of a document whose similarities are computed together
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


def fill(
    found: np.ndarray,
    embedding: SentenceEmbedding,
    lines: Lines,
    index: DocumentIndex,
    symbols: Sequence[str],
    language_token: Optional[int] = None,
    title: Optional[str] = None,
) -> int:
    """Writes the result of :func:`most_similar` for each document to the rows of its sentences.

    Args:
        found: [lines, most] int16, zeros.
        embedding: sentence vectors.
        lines: corpus.
        index: documents of the corpus.
        symbols: symbols of the dictionary.
        language_token: token at the start of all sentences, if any.
        title: title of a progress bar; None: no bar.

    Returns:
        number of tokens that have a vector.
    """
    words_of, known = embedding.vocabulary.of_tokens(symbols), 0
    documents = tqdm(pairwise(index.documents), title, len(index), unit=" documents", disable=None if title else True)
    for start, end in documents:
        items = index.items[start:end]
        sentences = [lines[int(item)].numpy() for item in items]
        words = words_of([tokens[1:] if tokens[0] == language_token else tokens for tokens in sentences])
        known += int((words.ids < len(embedding.words)).sum())
        found[items] = most_similar(embedding.embed(words), found.shape[1])
    return known


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
    """
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import infer_dataset_impl, make_dataset

    folder, total = data_bin(folder), 0
    language, tokens = language or languages_of(folder)[0], read_language_tokens(folder)
    file = folder / f"dict.{language}.txt"
    with dictionary_errors(file):
        dictionary = Dictionary.load(str(file))
    for prefix in (path.with_suffix("") for path in sorted(folder.glob(f"*.*.{language}.idx"))):
        kind = "mmap" if infer_dataset_impl(str(prefix)) == "mmap" else "lazy"
        lines = make_dataset(str(prefix), kind, fix_lua_indexing=True)
        marks = Marks.read(lines, paragraph_symbol(dictionary))
        index = DocumentIndex.build(marks, str(prefix), unmarked)
        with npy_on_disk(similar_file(prefix), (len(lines), embedding.settings.neighbours), np.int16) as found:
            token = dictionary.indices.get(tokens.get(language))
            if not fill(found, embedding, lines, index, dictionary.symbols, token, similar_file(prefix).name):
                raise InputError(f"{prefix}: no word has a vector; fit the model on the same (sub)words")
        logger.info(f"{similar_file(prefix)}: {len(index.items):,} sentences in {len(index):,} documents")
        total += len(index.items)
    embedding.save(vectors_file(folder, language))
    return total


class SimilarContext:
    """Similar sentences for the models of a task: read from the files of a data-bin, or computed."""

    def __init__(
        self,
        data_bin: Path,
        languages: Tuple[str, str],
        symbols: Sequence[str],
        language_token: Optional[int] = None,
    ):
        self.data_bin, self.languages = data_bin, languages
        self.symbols, self.language_token = symbols, language_token
        self.needed = 0  # similar sentences per sentence, the maximum over the models

    def of_split(self, data_bin: Path, split: str, lines: Lines) -> np.ndarray:
        """Returns the table of a split, see :func:`read_similar`."""
        return read_similar(data_bin, split, self.languages, lines, self.needed)

    def in_memory(self, lines: Lines, index: DocumentIndex) -> np.ndarray:
        """Returns the table of text that is not in a data-bin."""
        found = np.zeros((len(lines), self.vectors.settings.neighbours), dtype=np.int16)
        fill(found, self.vectors, lines, index, self.symbols, self.language_token)
        return found

    @property
    def files(self) -> List[Path]:
        """Files that :meth:`in_memory` depends on."""
        return [self._file]

    @property
    def _file(self) -> Path:
        return vectors_file(self.data_bin, self.languages[0])

    @cached_property
    def vectors(self) -> SentenceEmbedding:
        """Sentence vectors."""
        if not self._file.is_file():
            command = how_to_make(self.data_bin, self.languages[0], self.needed)
            raise InputError(f"{self._file}: is missing; the model needs similar sentences: run {command}")
        return SentenceEmbedding.load(self._file, "similar sentences:")

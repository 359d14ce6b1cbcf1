"""A model of sentence vectors from word vectors and a corpus, of which one word count is kept, and never the text."""

import logging
from typing import Iterator, Sequence

import numpy as np
import torch

from docnmt_fairseq.corpus.files import refuse_streams
from docnmt_fairseq.embedding.model import SentenceEmbedding, Settings, method_of, sums, vocabulary_of
from docnmt_fairseq.embedding.vocabulary import Words
from docnmt_fairseq.embedding.word_vectors import WordVectors
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

logger = logging.getLogger(__name__)
SAMPLE = 100_000  # sentences that the first component of a large corpus is taken from, spread over all of it


def fit(word_vectors: WordVectors, corpus: Sequence[PathLike], settings: Settings) -> SentenceEmbedding:
    """Fits the model of a corpus.

    Args:
        word_vectors: of words, or of subwords if the corpus has these.
        corpus: files of delimited text; marks are left out.
        settings: of the model.

    Raises:
        InputError: a file cannot be read; no word of the corpus has a vector; no method of that name.
    """
    refuse_streams(*corpus)
    vocabulary = vocabulary_of(word_vectors.words, settings)
    counts = np.zeros(len(vocabulary) + 1, dtype=np.int64)
    sentences = 0
    for words in vocabulary.encode_files(corpus):
        counts += np.bincount(words.ids, minlength=len(counts))
        sentences += len(words.lengths)
    known, unknown = counts[:-1], counts[-1]
    logger.info(
        f"{sentences:,} sentences, {counts.sum():,} words; {np.count_nonzero(known):,} of {len(vocabulary):,} vectors "
        f"in use, {unknown:,} words without one"
    )
    if not known.any():
        raise InputError("--corpus: no word of it has a vector; are both of words, or both of the same subwords?")

    def means(table: np.ndarray) -> Iterator[np.ndarray]:
        stride, first = -(-sentences // SAMPLE), 0
        for words in vocabulary.encode_files(corpus):
            chosen = every(words, stride, -first % stride)
            first += len(words.lengths)
            yield sums(torch.from_numpy(table), chosen) / np.maximum(chosen.lengths, 1)[:, None].astype(np.float32)

    learnt = method_of(settings).fit(word_vectors.vectors, known, means)
    return SentenceEmbedding(word_vectors.words, word_vectors.vectors, known, learnt, settings)


def every(words: Words, stride: int, first: int) -> Words:
    """Each so-manieth of some sentences, from number ``first`` on."""
    chosen = np.zeros(len(words.lengths), dtype=bool)
    chosen[first::stride] = True
    return Words(words.ids[np.repeat(chosen, words.lengths)], words.lengths[chosen])

"""Word vectors from text files of word2vec, GloVe and fastText, or from the embeddings of a checkpoint."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List

import numpy as np

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: distinct words.
        vectors: [V, d] float32.
    """

    words: List[str]
    vectors: np.ndarray


def read_text_vectors(path: PathLike) -> WordVectors:
    """Reads a text file with a word and its numbers per line, separated by spaces; words may contain spaces.

    A first line of two integers is a header. The first vector of a repeated word is used.

    Raises:
        InputError: the file cannot be read, or a line is invalid.
    """
    vectors: Dict[str, np.ndarray] = {}
    width = repeated = 0
    for number, line in enumerate(read_lines(path, strip=" \r\n"), start=1):
        fields = line.split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            width = int(fields[1])
            continue
        width = width or len(fields) - 1
        if width < 1 or len(fields) <= width:
            raise InputError.at(path, number, f"expected a word and {max(width, 1)} numbers")
        try:
            vector = np.array(fields[-width:], dtype=np.float32)
        except ValueError:
            raise InputError.at(path, number, f"expected numbers in the last {width} fields") from None
        if not np.isfinite(vector).all():
            raise InputError.at(path, number, "a number is not finite")
        word = " ".join(fields[:-width])
        repeated += word in vectors
        vectors.setdefault(word, vector)
    if not vectors:
        raise InputError(f"{path}: no word vectors")
    if repeated:
        logger.warning(f"{path}: {repeated:,} repeated words; their first vectors are used")
    return WordVectors(list(vectors), np.stack(list(vectors.values())))


def read_checkpoint_vectors(path: PathLike, data: Path) -> WordVectors:
    """Reads the source embeddings of a trained model, without special symbols and ``<p>``.

    Args:
        path: checkpoint of a model of fairseq or this package.
        data: data-bin with its dictionaries, or the output of ``docnmt prepare``.

    Raises:
        InputError: missing file, no safe checkpoint, other dictionaries, or an embedding is not finite.
    """
    from docnmt_fairseq.checkpoints import load_ensemble

    ensemble = load_ensemble(path, data=data)
    embeddings = ensemble.model.encoder.embed_tokens.weight.detach().float().numpy()
    if not np.isfinite(embeddings).all():
        raise InputError(f"--path {path}: an embedding is not finite: the training diverged")
    dictionary = ensemble.dictionaries[0]
    kept = [n for n in range(dictionary.nspecial, len(dictionary)) if dictionary.symbols[n] != PARAGRAPH]
    return WordVectors([dictionary.symbols[number] for number in kept], embeddings[kept])

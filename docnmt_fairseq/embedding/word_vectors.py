"""Word vectors: of a text file as word2vec, GloVe and fastText write them, or the embeddings of a checkpoint."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List

import numpy as np

from docnmt_fairseq.corpus.dictionaries import dictionary_errors
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.prepared import data_bin, languages_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike
from docnmt_fairseq.marks import PARAGRAPH

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: each once.
        vectors: [V, d] float32.
    """

    words: List[str]
    vectors: np.ndarray


def read_text_vectors(path: PathLike) -> WordVectors:
    """Reads the vectors of a text file: a word and its numbers a line, spaces between, which a word may hold, too.

    A first line of two whole numbers is a header. Of a word that comes again the first vector counts.

    Raises:
        InputError: the file cannot be read; a line with too few numbers, or with something that is none.
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
            raise InputError.at(
                path, number, f"expected a word and {max(width, 1)} numbers, found {len(fields)} fields"
            )
        try:
            vector = np.array(fields[-width:], dtype=np.float32)
        except ValueError:
            raise InputError.at(
                path, number, f"the last {width} fields must be numbers, as in the lines before"
            ) from None
        if not np.isfinite(vector).all():
            raise InputError.at(path, number, "a number is not finite")
        word = " ".join(fields[:-width])
        repeated += word in vectors
        vectors.setdefault(word, vector)
    if not vectors:
        raise InputError(f"{path}: holds no word vectors")
    if repeated:
        logger.warning(f"{path}: {repeated:,} words come again; their first vectors count")
    return WordVectors(list(vectors), np.stack(list(vectors.values())))


def read_checkpoint_vectors(path: PathLike, data: Path) -> WordVectors:
    """Reads the embeddings of a trained model's source symbols, special symbols and ``<p>`` left out.

    Args:
        path: a checkpoint of fairseq's or of this package's models.
        data: the data-bin with its dictionaries, or the folder of ``docnmt prepare`` around it.

    Raises:
        InputError: a file is missing; not a checkpoint that can be loaded safely; no source embeddings, or others than
            the dictionary has.
    """
    from fairseq.data import Dictionary

    from docnmt_fairseq.checkpoints import read_checkpoint

    state = read_checkpoint(path)
    try:
        embeddings = state["model"]["encoder.embed_tokens.weight"].float().numpy()
    except (KeyError, AttributeError):
        raise InputError(f"--path {path}: a model without embeddings of source symbols") from None
    if not np.isfinite(embeddings).all():
        raise InputError(f"--path {path}: an embedding is not finite, as of a training that diverged; give another")
    language = state["cfg"].task.get("source_lang")
    folder = data_bin(data)
    file = folder / f"dict.{language or languages_of(folder)[0]}.txt"
    if not file.is_file():
        raise InputError(f"--data {data}: lacks {file.name}, the dictionary of the model's source")
    with dictionary_errors(file):
        dictionary = Dictionary.load(str(file))
    if len(dictionary) != len(embeddings):
        raise InputError(
            f"--data {data}: its source dictionary has {len(dictionary):,} symbols, the checkpoint {len(embeddings):,}"
        )
    kept = [n for n in range(dictionary.nspecial, len(dictionary)) if dictionary.symbols[n] != PARAGRAPH]
    return WordVectors([dictionary.symbols[number] for number in kept], embeddings[kept])

"""The files of similar sentences beside a data-bin."""

import logging
import re
from pathlib import Path
from typing import Dict, Optional

import numpy as np

from docnmt_fairseq.corpus.data_bin import read_language_tokens
from docnmt_fairseq.corpus.dictionaries import dictionary_errors
from docnmt_fairseq.corpus.files import npy_on_disk
from docnmt_fairseq.corpus.prepared import data_bin
from docnmt_fairseq.data.index import DocumentIndex, Marks
from docnmt_fairseq.data.similar import similar_file, vectors_file
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.embedding.neighbours import fill
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import paragraph_symbol

logger = logging.getLogger(__name__)


def sides_of(folder: Path, language: Optional[str]) -> Dict[Path, str]:
    """The prefixes of a data-bin's splits in one language, with that language.

    Args:
        folder: the data-bin.
        language: None: the first of each pair.

    Raises:
        InputError: there are none.
    """
    found = {}
    for file in sorted(folder.glob("*.idx")):
        match = re.fullmatch(r"[^.]+\.([^.]+)\.([^.]+)\.idx", file.name)
        if match and (match[2] == language or (language is None and match[1].startswith(f"{match[2]}-"))):
            found[file.with_suffix("")] = match[2]
    if not found:
        wanted = "SPLIT.SOURCE-TARGET.SOURCE.idx" if language is None else f"SPLIT.SOURCE-TARGET.{language}.idx"
        raise InputError(f"{folder}: holds no {wanted}; give a data-bin, or the folder that docnmt prepare wrote")
    return found


def write_neighbours(
    folder: Path, embedding: SentenceEmbedding, language: Optional[str] = None, unmarked: str = "document"
) -> int:
    """Writes the files of every split, and the vectors beside them.

    Args:
        folder: a data-bin, or the folder of ``docnmt prepare`` around it.
        embedding: with the number of ``neighbours``.
        language: None: the source, as the data-bin names it.
        unmarked: what a file without an empty line is, see :meth:`DocumentIndex.build`.

    Returns:
        the number of sentences.

    Raises:
        InputError: there is no such data-bin, no dictionary, no known word, or a file cannot be written.
    """
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import infer_dataset_impl, make_dataset

    folder, total = data_bin(folder), 0
    sides, tokens = sides_of(folder, language), read_language_tokens(folder)
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
                raise InputError(f"{prefix}: no word of it has a vector; was the model fitted on the same (sub)words?")
        logger.info(f"{similar_file(prefix)}: {len(index.items):,} sentences in {len(index):,} documents")
        total += len(index.items)
    for side in sorted(set(sides.values())):
        embedding.save(vectors_file(folder, side))
    return total

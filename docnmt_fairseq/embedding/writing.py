"""Vectors of a text's sentences, written as they are made."""

from itertools import islice
from pathlib import Path

import numpy as np

from docnmt_fairseq.corpus.files import npy_on_disk, read_lines, refuse_streams
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.embedding.vocabulary import CHUNK
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark


def write_vectors(embedding: SentenceEmbedding, source: Path, target: Path) -> int:
    """Writes a text's vectors, [lines, d] float32 ``.npy``, zero for lines that are marks.

    Returns:
        the number of lines.

    Raises:
        InputError: a file cannot be read, or written; the text is empty.
    """
    refuse_streams(source)
    total = sum(1 for _ in read_lines(source))
    if not total:
        raise InputError(f"{source}: is empty")
    lines = read_lines(source)
    with npy_on_disk(target, (total, embedding.width), np.float32) as vectors:
        for start in range(0, total, CHUNK):
            chunk = list(islice(lines, CHUNK))
            words = embedding.vocabulary.encode("" if is_mark(line) else line for line in chunk)
            vectors[start : start + len(chunk)] = embedding.embed(words)
    return total

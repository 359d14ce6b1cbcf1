"""Vectors of a text's sentences, written as they are made."""

import os
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Iterator, Tuple

import numpy as np

from docnmt_fairseq.corpus.files import PathLike, open_binary, partial_path, read_lines
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.embedding.vocabulary import CHUNK
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark


@contextmanager
def npy_on_disk(path: PathLike, shape: Tuple[int, ...], dtype: type) -> Iterator[np.ndarray]:
    """Opens an array in a ``.npy`` file, zeros at first, which appears under its name when the block ends well.

    Raises:
        InputError: the file cannot be written.
    """
    partial = partial_path(path)
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        array = np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape)
        yield array
        array.flush()
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


def write_vectors(embedding: SentenceEmbedding, source: Path, target: Path) -> int:
    """Writes a text's vectors, [lines, d] float32 ``.npy``, zero for lines that are marks.

    Returns:
        the number of lines.

    Raises:
        InputError: a file cannot be read, or written; the text is empty.
    """
    with open_binary(source) as stream:
        total = sum(1 for _ in stream)
    if not total:
        raise InputError(f"{source}: is empty")
    lines = read_lines(source)
    with npy_on_disk(target, (total, embedding.width), np.float32) as vectors:
        for start in range(0, total, CHUNK):
            chunk = list(islice(lines, CHUNK))
            words = embedding.vocabulary.encode("" if is_mark(line) else line for line in chunk)
            vectors[start : start + len(chunk)] = embedding.embed(words)
    return total

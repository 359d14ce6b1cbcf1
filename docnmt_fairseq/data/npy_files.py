"""Arrays of NumPy's that are written to disk a part at a time."""

import os
from contextlib import contextmanager
from typing import Iterator, Tuple

import numpy as np

from docnmt_fairseq.corpus.files import PathLike, written_by_others


@contextmanager
def npy_on_disk(path: PathLike, shape: Tuple[int, ...], dtype: type) -> Iterator[np.ndarray]:
    """Opens an array in a ``.npy`` file, zeros at first, which appears under its name when the block ends well.

    Raises:
        InputError: the file cannot be written.
    """
    with written_by_others(path) as partial:
        array = np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape)
        if hasattr(os, "posix_fallocate"):  # or a page that the disk has no room for would end the process later
            with open(partial, "r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, partial.stat().st_size)
        yield array
        array.flush()

"""The sentences of each document of each file, counted once for all shards of a translation."""

from array import array
from pathlib import Path
from typing import List, Sequence

import numpy as np

from docnmt_fairseq.arrays import UNREADABLE
from docnmt_fairseq.corpus.files import written_by_others
from docnmt_fairseq.errors import InputError


def write_counts(path: Path, sources: Sequence[Path], sizes: Sequence[Sequence[int]]) -> None:
    """Writes them.

    Args:
        path: file to write.
        sources: the files.
        sizes: sentences of each document of each file.

    Raises:
        InputError: it cannot be written; a source is gone.
    """
    states = np.array([_state(source) for source in sources], dtype=np.int64)
    documents = np.array([len(of_file) for of_file in sizes], dtype=np.int64)
    sentences = np.concatenate([np.asarray(of_file, dtype=np.int64) for of_file in sizes])
    with written_by_others(path) as partial, open(partial, "wb") as stream:
        np.savez(stream, states=states, documents=documents, sentences=sentences)


def read_counts(path: Path, sources: Sequence[Path]) -> List[Sequence[int]]:
    """Reads what :func:`write_counts` wrote: sentences of each document of each file.

    Raises:
        InputError: it cannot be read, or is of other files than these are now.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            states, documents, sentences = (arrays[name] for name in ("states", "documents", "sentences"))
        sizes = np.split(sentences, np.cumsum(documents)[:-1])
    except UNREADABLE as error:
        raise InputError(f"--counts {path}: cannot be read: {error}") from error
    if len(states) != len(sources):
        raise InputError(f"--counts {path}: of {len(states):,} files, --input has {len(sources):,}; begin anew")
    for source, state in zip(sources, states.tolist()):
        if _state(source) != state:
            raise InputError(f"{source}: was changed since its sentences were counted; begin anew with --force")
    return [array("q", of_file.astype(np.int64).tobytes()) for of_file in sizes]


def _state(source: Path) -> List[int]:
    """Size in bytes, and time of change in ns."""
    try:
        status = source.stat()
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error
    return [status.st_size, status.st_mtime_ns]

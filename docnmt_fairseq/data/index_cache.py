"""Cache of document indexes next to the data-bin: built once, memory-mapped by all processes."""

import hashlib
import json
import logging
import os
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.data.index import DocumentIndex, Lines, Marks, check_parallel, files_of, name_of, part_starts
from docnmt_fairseq.files import identity

ENDING = ".index.npy"
COMBINED = ".combined"  # precedes the ending for train, train1, … together
HEADER = 16  # int32 numbers: fingerprint (8), lengths of the arrays
FINGERPRINT = 8
ARRAYS = ("documents", "paragraphs", "items", "levels")

logger = logging.getLogger(__name__)


def read_index(
    source: Lines, target: Optional[Lines], symbols: Tuple[Optional[int], Optional[int]], name: str, unmarked: str
) -> DocumentIndex:
    """Returns the index of a parallel corpus, cached or built after checking that both sides have the same boundaries.

    Args:
        source, target: fairseq datasets; no target in translation.
        symbols: id of ``<p>`` in either dictionary.
        name: name of the corpus, for messages.
        unmarked: see :meth:`DocumentIndex.build`.
    """

    def build() -> DocumentIndex:
        marks = Marks.read(source, symbols[0])
        if target is not None:
            check_parallel(marks, Marks.read(target, symbols[1]), name)
        return DocumentIndex.build(marks, name, unmarked, part_starts(source))

    settings = [*symbols, unmarked, *part_starts(source)]
    return cached_index([source] if target is None else [source, target], settings, build)


def cache_indexes(data_bin: Path, languages: Tuple[str, str]) -> None:
    """Writes the missing indexes of a data-bin, so that no training has to.

    Args:
        data_bin: folder with ``<p>`` in both dictionaries.
        languages: source and target.
    """
    prefixes = [Path(file).with_suffix("") for file in data_bin.glob(f"*.{'-'.join(languages)}.{languages[0]}.idx")]
    prefixes = [prefix for prefix in prefixes if not Path(f"{prefix}{ENDING}").exists()]
    if not prefixes:
        return
    from fairseq.data import Dictionary
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    dictionaries = [Dictionary.load(str(data_bin / f"dict.{language}.txt")) for language in languages]
    source_symbol, target_symbol = (paragraph_symbol(dictionary) for dictionary in dictionaries)
    for prefix in prefixes:
        source, target = (MMapIndexedDataset(str(prefix.with_suffix(f".{language}"))) for language in languages)
        read_index(source, target, (source_symbol, target_symbol), str(prefix), "document")


def cached_index(sides: Sequence[Lines], settings: Sequence[Any], build: Callable[[], DocumentIndex]) -> DocumentIndex:
    """Returns the index in the file next to the source, or a new one, which is written there if possible.

    The index of several files together is next to the first. Outdated or damaged files are replaced.

    Args:
        sides: datasets, the source first.
        settings: what the index depends on in addition, as JSON values.
        build: builds the index.
    """
    files = [files_of(lines) for lines in sides]
    if not all(several and all(os.path.isfile(f"{one}.idx") for one in several) for several in files):
        return build()
    path, names = Path(files[0][0] + (COMBINED if len(files[0]) > 1 else "") + ENDING), list(map(name_of, sides))
    fingerprint = _fingerprint(list(chain(*files)), settings)
    found = _load(path, fingerprint, names)
    if found is not None:
        return found
    index = build()
    try:
        _save(path, fingerprint, index, sides)
    except OSError as error:
        logger.info(f"{path}: cannot be written ({error.strerror}); every process holds its own index")
        return index
    return _load(path, fingerprint, names) or index


def _fingerprint(prefixes: Sequence[str], settings: Sequence[Any]) -> np.ndarray:
    """Returns eight numbers that depend on size and modification time of the files and on the settings."""
    value = [list(settings), [identity(prefix + ending) for prefix in prefixes for ending in (".idx", ".bin")]]
    return np.frombuffer(hashlib.sha256(json.dumps(value).encode()).digest(), dtype=np.int32)


def _load(path: Path, fingerprint: np.ndarray, names: Sequence[str]) -> Optional[DocumentIndex]:
    """Returns the index in a file; None if it is missing, damaged or has another fingerprint."""
    try:
        table = np.asarray(np.load(path, mmap_mode="r"))
    except Exception:  # NumPy raises many kinds of errors for damaged files
        return None
    if table.dtype != np.int32 or table.ndim != 1 or len(table) < HEADER:
        return None
    ends = HEADER + np.cumsum(table[FINGERPRINT : FINGERPRINT + len(ARRAYS) + len(names)], dtype=np.int64)
    if (table[:FINGERPRINT] != fingerprint).any() or ends[-1] != len(table):
        return None
    arrays = [table[start:end] for start, end in pairwise([HEADER, *ends.tolist()])]
    named: Dict[str, np.ndarray] = dict(zip(ARRAYS, arrays))
    return DocumentIndex(**named, sizes=dict(zip(names, arrays[len(ARRAYS) :])))


def _save(path: Path, fingerprint: np.ndarray, index: DocumentIndex, sides: Sequence[Lines]) -> None:
    """Writes an index atomically; without a memory map, in which a full disk would end the process with SIGBUS."""
    lengths = [len(getattr(index, name)) for name in ARRAYS] + [len(index.items)] * len(sides)
    header = np.zeros(HEADER, np.int32)
    header[:FINGERPRINT] = fingerprint
    header[FINGERPRINT : FINGERPRINT + len(lengths)] = lengths
    arrays = (getattr(index, name) for name in ARRAYS)
    sizes = (np.asarray(lines.sizes)[index.items] for lines in sides)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # several processes may write at the same time
    try:
        with open(temporary, "wb") as stream:
            shape = (HEADER + sum(lengths),)
            np.lib.format.write_array_header_1_0(stream, {"descr": "<i4", "fortran_order": False, "shape": shape})
            for array in chain([header], arrays, sizes):
                stream.write(np.ascontiguousarray(array, np.int32).data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

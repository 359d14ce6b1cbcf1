"""The index of a corpus in a file beside it: built once, mapped into memory that all processes of a machine share."""

import hashlib
import json
import logging
import os
import zlib
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.data.index import DocumentIndex, Lines, Marks, check_parallel, files_of, name_of, part_starts
from docnmt_fairseq.locks import workplace

ENDING = ".index.npy"
COMBINED = ".combined"  # before it: of train, train1, … together
HEADER = 16  # numbers of four bytes: of what the index is, its sum, and the lengths of its arrays
ARRAYS = ("documents", "paragraphs", "items")

logger = logging.getLogger(__name__)


def is_index(path: Path) -> bool:
    """Whether a file beside a corpus is an index of it, which anybody who reads the corpus may write."""
    return path.name.endswith(ENDING)


def read_index(
    source: Lines, target: Optional[Lines], symbols: Tuple[Optional[int], Optional[int]], name: str, unmarked: str
) -> DocumentIndex:
    """The index of a parallel corpus after checking that both sides have the same marks; kept beside it.

    Args:
        source, target: fairseq datasets; no target in translation.
        symbols: the number of ``<p>`` in either dictionary.
        name: of the corpus, for messages.
        unmarked: see :meth:`DocumentIndex.build`.
    """

    def build() -> DocumentIndex:
        marks = Marks.read(source, symbols[0])
        if target is not None:
            check_parallel(marks, Marks.read(target, symbols[1]), name)
        return DocumentIndex.build(marks, name, unmarked, part_starts(source))

    # Where files begin changes what is unmarked: of one file it says nothing, and its older indexes stay good.
    settings = [*symbols, unmarked, *part_starts(source)]
    return cached_index([source] if target is None else [source, target], settings, build)


def cache_indexes(data_bin: Path, languages: Tuple[str, str]) -> None:
    """Writes the indexes of a data-bin's splits, so that no training has to; those that are there stay.

    Args:
        data_bin: with ``<p>`` in both dictionaries.
        languages: source and target.

    Raises:
        InputError: the marks of both sides of a split differ.
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
    """The index of a corpus: that in the file beside the source, else a new one, which is written there if it can be.

    That of several files together stands beside the first. A file that is damaged, or of other settings or other data
    than those that are there now, is written anew.

    Args:
        sides: the datasets, the source first.
        settings: what the index depends on beside them, as JSON values.
        build: makes it.
    """
    files = [files_of(lines) for lines in sides]
    if not all(several and all(os.path.isfile(f"{one}.idx") for one in several) for several in files):
        return build()
    path, names = Path(files[0][0] + (COMBINED if len(files[0]) > 1 else "") + ENDING), list(map(name_of, sides))
    about = _about(list(chain(*files)), settings)
    found = _load(path, about, names)
    if found is not None:
        return found
    index = build()
    try:
        _save(path, about, index, sides)
    except OSError as error:
        logger.info(f"{path}: cannot be written ({error.strerror}); every process has an index of its own")
        return index
    return _load(path, about, names) or index


def _about(prefixes: Sequence[str], settings: Sequence[Any]) -> np.ndarray:
    """What an index is of, as eight numbers: size and time of change of the files, and the settings."""
    files = [os.stat(prefix + ending) for prefix in prefixes for ending in (".idx", ".bin")]
    value = [list(settings), [[file.st_size, file.st_mtime_ns] for file in files]]
    return np.frombuffer(hashlib.sha256(json.dumps(value).encode()).digest(), dtype=np.int32)


def _load(path: Path, about: np.ndarray, names: Sequence[str]) -> Optional[DocumentIndex]:
    """The index in a file; None if there is none, or not this one."""
    try:
        table = np.asarray(np.load(path, mmap_mode="r"))
    except Exception:  # NumPy raises many kinds of errors for damaged files
        return None
    if table.dtype != np.int32 or table.ndim != 1 or len(table) < HEADER or (table[: len(about)] != about).any():
        return None
    lengths = table[len(about) + 1 : HEADER]
    ends = HEADER + np.cumsum(lengths[: len(ARRAYS) + len(names) + 1], dtype=np.int64)
    if ends[-1] != len(table) or _sum(table) != table[len(about)]:
        return None
    arrays = [table[start:end] for start, end in pairwise([HEADER, *ends.tolist()])]
    named: Dict[str, np.ndarray] = dict(zip(ARRAYS, arrays))
    return DocumentIndex(**named, levels=arrays[-1], sizes=dict(zip(names, arrays[len(ARRAYS) :])))


def _save(path: Path, about: np.ndarray, index: DocumentIndex, sides: Sequence[Lines]) -> None:
    """Writes an index aside, and puts it into its place.

    By plain writes: in a mapped file, a page that the disk has no room for ends the process with SIGBUS.
    """
    lengths = [len(getattr(index, name)) for name in ARRAYS] + [len(index.items)] * len(sides)
    lengths.append(len(index.levels))  # last, so that older files, which lack it, are read as they are
    own = (getattr(index, name) for name in ARRAYS)
    sizes = (np.asarray(lines.sizes)[index.items] for lines in sides)
    head = np.zeros(HEADER, np.int32)
    head[: len(about)] = about
    head[len(about) + 1 : len(about) + 1 + len(lengths)] = lengths
    with workplace(path) as folder:
        written, total = folder / path.name, 0
        with open(written, "wb") as stream:
            shape = (HEADER + sum(lengths),)
            np.lib.format.write_array_header_1_0(stream, {"descr": "<i4", "fortran_order": False, "shape": shape})
            begin = stream.tell()
            stream.write(head.data)
            for array in chain(own, sizes, [index.levels]):
                content = np.ascontiguousarray(array, np.int32).data
                stream.write(content)
                total = zlib.crc32(content, total)
            head[len(about)] = _as_number(total)  # known only now
            stream.seek(begin)
            stream.write(head.data)
        os.replace(written, path)


def _sum(table: np.ndarray) -> np.int32:
    """The check sum of the arrays."""
    return _as_number(zlib.crc32(table[HEADER:].data))


def _as_number(total: int) -> np.int32:
    return np.uint32(total).astype(np.int32)

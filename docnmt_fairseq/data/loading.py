"""Loading of the splits of a data-bin: complete files, and the index of their documents, cached next to them."""

import hashlib
import itertools
import json
import logging
import os
import struct
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from fairseq.data import ConcatDataset, Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from fairseq.data.indexed_dataset import MMapIndexedDataset

from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.data.index import DocumentIndex, Lines, Marks, check_parallel, files_of, name_of, part_starts
from docnmt_fairseq.errors import InputError, first_line

REMEDY = "it is damaged or incomplete; make or copy the data-bin again"

INDEX_ENDING = ".index.npy"
COMBINED = ".combined"  # precedes the ending for train, train1, … together
INDEX_HEADER = 16  # int32 numbers: fingerprint (8), lengths of the arrays
FINGERPRINT = 8
ARRAYS = ("documents", "paragraphs", "items", "levels")

logger = logging.getLogger(__name__)


# --- Lines ---


def load_side(
    data_bin: Path,
    split: str,
    languages: Tuple[str, str],
    side: str,
    dictionary: Dictionary,
    dataset_impl: Optional[str],
    combine: bool = False,
    upsample_primary: int = 1,
) -> Optional[Lines]:
    """Loads one side of a split (source, target, or an extra side) from the files of either direction.

    With ``combine`` also loads ``train1``, ``train2``, …; ``upsample_primary`` repeats ``train`` then. Returns None if
    there are no files.
    """
    parts: List[Lines] = []
    for number in itertools.count() if combine else [0]:
        names = [f"{split}{number or ''}.{'-'.join(pair)}.{side}" for pair in (languages, languages[::-1])]
        found = (_load(data_bin / name, dictionary, dataset_impl) for name in names)
        part = next((lines for lines in found if lines is not None), None)
        if part is None:
            break
        parts.append(part)
    if len(parts) > 1:
        return ConcatDataset(parts, [max(1, upsample_primary), *[1] * (len(parts) - 1)])
    return parts[0] if parts else None


def load_required_side(data_bin: Path, split: str, languages: Tuple[str, str], side: str, *settings: Any) -> Lines:
    """Loads one side like :func:`load_side`; raises :class:`InputError` if there are no files."""
    lines = load_side(data_bin, split, languages, side, *settings)
    if lines is None:
        splits = sorted({file.name.split(".")[0] for file in data_bin.glob(f"*.*-*.{side}.idx")})
        file = f"{split}.{'-'.join(languages)}.{side}.idx"
        raise InputError(f"{data_bin}: contains no {file}; splits with {side}: {', '.join(splits) or 'none'}")
    return lines


def _load(prefix: Path, dictionary: Dictionary, dataset_impl: Optional[str]) -> Optional[Lines]:
    """Loads a file; checks that it is complete and, by its last lines, of this dictionary.

    fairseq would fail in the middle of an epoch, or train on wrong tokens.
    """
    try:
        lines: Any = load_indexed_dataset(str(prefix), dictionary, dataset_impl)
        mapped = isinstance(lines, MMapIndexedDataset)  # other formats are not checked
        tokens = np.frombuffer(lines._bin_buffer, dtype=lines._index.dtype) if mapped else None
    except (AssertionError, KeyError, ValueError, struct.error) as error:
        raise InputError(f"{prefix}.{{bin,idx}}: {first_line(error)}: {REMEDY}") from error
    if tokens is not None:
        complete = len(tokens) == int(lines.sizes.sum(dtype=np.int64))
        last = tokens[-int(lines.sizes[-100:].sum()) :]
        if not complete or int(last.max()) >= len(dictionary) or int(last[-1]) != dictionary.eos():
            raise InputError(f"{prefix}.{{bin,idx}}: made with another dictionary, or {REMEDY}")
    return lines


# --- Index of documents ---


def read_index(
    source: Lines, target: Optional[Lines], symbols: Tuple[Optional[int], Optional[int]], name: str, unmarked: str
) -> DocumentIndex:
    """Returns the index of a parallel corpus after checking that both sides have the same boundaries.

    It is cached in a file next to the source, memory-mapped by all processes; that of several files together is next to
    the first. Outdated or damaged files are replaced.

    Args:
        source, target: fairseq datasets; no target in translation.
        symbols: id of ``<p>`` in either dictionary.
        name: name of the corpus, for messages.
        unmarked: see :meth:`DocumentIndex.build`.
    """
    sides = [source] if target is None else [source, target]
    files = [files_of(lines) for lines in sides]
    names = list(map(name_of, sides))
    path = None
    if all(files):  # otherwise in memory
        path = Path(files[0][0] + (COMBINED if len(files[0]) > 1 else "") + INDEX_ENDING)
        fingerprint = _fingerprint(list(chain(*files)), [*symbols, unmarked, *part_starts(source)])
        if (cached := _load_index(path, fingerprint, names)) is not None:
            return cached
    marks = Marks.read(source, symbols[0])
    if target is not None:
        check_parallel(marks, Marks.read(target, symbols[1]), name)
    index = DocumentIndex.build(marks, name, unmarked, part_starts(source))
    if path is None:
        return index
    try:
        _save_index(path, fingerprint, index, sides)
    except OSError as error:
        logger.info(f"{path}: cannot be written ({error.strerror}); every process holds its own index")
        return index
    return _load_index(path, fingerprint, names) or index


def cache_indexes(data_bin: Path, languages: Tuple[str, str]) -> None:
    """Writes the missing indexes of a data-bin, so that no training has to; both dictionaries contain ``<p>``."""
    dictionaries = [Dictionary.load(str(data_bin / f"dict.{language}.txt")) for language in languages]
    source_symbol, target_symbol = map(paragraph_symbol, dictionaries)
    for file in data_bin.glob(f"*.{'-'.join(languages)}.{languages[0]}.idx"):
        prefix = file.with_suffix("")
        if not Path(f"{prefix}{INDEX_ENDING}").exists():
            source, target = (MMapIndexedDataset(str(prefix.with_suffix(f".{language}"))) for language in languages)
            read_index(source, target, (source_symbol, target_symbol), str(prefix), "document")


def _fingerprint(prefixes: Sequence[str], settings: Sequence[Any]) -> np.ndarray:
    """Returns eight numbers that depend on size and modification time of the files and on the settings."""
    files = [os.stat(prefix + ending) for prefix in prefixes for ending in (".idx", ".bin")]
    value = [list(settings), [[file.st_size, file.st_mtime_ns] for file in files]]
    return np.frombuffer(hashlib.sha256(json.dumps(value).encode()).digest(), dtype=np.int32)


def _load_index(path: Path, fingerprint: np.ndarray, names: Sequence[str]) -> Optional[DocumentIndex]:
    """Returns the index in a file; None if it is missing, damaged or has another fingerprint."""
    try:
        table = np.asarray(np.load(path, mmap_mode="r"))
    except Exception:  # NumPy raises many kinds of errors for damaged files
        return None
    if table.dtype != np.int32 or table.ndim != 1 or len(table) < INDEX_HEADER:
        return None
    ends = INDEX_HEADER + np.cumsum(table[FINGERPRINT : FINGERPRINT + len(ARRAYS) + len(names)], dtype=np.int64)
    if (table[:FINGERPRINT] != fingerprint).any() or ends[-1] != len(table):
        return None
    arrays = [table[start:end] for start, end in pairwise([INDEX_HEADER, *ends.tolist()])]
    named: Dict[str, np.ndarray] = dict(zip(ARRAYS, arrays))
    return DocumentIndex(**named, sizes=dict(zip(names, arrays[len(ARRAYS) :])))


def _save_index(path: Path, fingerprint: np.ndarray, index: DocumentIndex, sides: List[Lines]) -> None:
    """Writes an index atomically; without a memory map, in which a full disk would end the process with SIGBUS."""
    arrays = [getattr(index, name) for name in ARRAYS]
    arrays += [np.asarray(lines.sizes)[index.items] for lines in sides]
    header = np.zeros(INDEX_HEADER, np.int32)
    header[:FINGERPRINT] = fingerprint
    header[FINGERPRINT : FINGERPRINT + len(arrays)] = list(map(len, arrays))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")  # several processes may write at the same time
    try:
        with open(temporary, "wb") as stream:
            np.save(stream, np.concatenate([header, *arrays], dtype=np.int32))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)

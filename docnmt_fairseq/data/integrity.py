"""Damaged data-bins are refused when they are loaded: what fairseq would fail at somewhere in an epoch, or train on."""

import itertools
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional, Tuple

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from fairseq.data.indexed_dataset import _code_to_dtype

from docnmt_fairseq.data.index import Lines
from docnmt_fairseq.errors import InputError, first_line

MAGIC = b"MMIDIDX\x00\x00"
HEADER = struct.Struct("<9sQBQ")  # magic, version, type of the tokens, items
OTHERS = (b"TNTIDX\x00\x00", b"HUFFIDX\x00\x00")  # of the older form, and of huffman, which fairseq reads
BLOCK = 1 << 18  # items looked at at a time
REMEDY = "it is damaged or incomplete; make the data-bin again, or copy it again from where it is whole"


def files_of(data_bin: str, split: str, pair: str, language: str, combine: bool) -> Iterator[Path]:
    """The files of one side of a split, without ending; ``combine``: ``train``, ``train1``, … as fairseq takes them."""
    for number in itertools.count() if combine else [0]:
        prefix = Path(data_bin) / f"{split}{number or ''}.{pair}.{language}"
        if not prefix.with_name(f"{prefix.name}.idx").is_file():
            return
        yield prefix


@contextmanager
def split_named(data_bin: str, split: str, languages: Tuple[str, str]) -> Iterator[None]:
    """Inside the block, fairseq's error about a split that is not there is one that says which are.

    Raises:
        InputError: there is no such split.
    """
    try:
        yield
    except FileNotFoundError as error:
        pairs = ("-".join(languages), "-".join(languages[::-1]))
        splits = sorted({path.name.split(".")[0] for pair in pairs for path in Path(data_bin).glob(f"*.{pair}.*")})
        raise InputError(f"{data_bin}: has no split {split!r}; there are: {', '.join(splits) or 'none'}") from error


def check_side(data_bin: str, split: str, pair: str, language: str, symbols: int, end: int, combine: bool) -> None:
    """Looks whether the files of one side of a split are whole, and of this dictionary.

    Files of other forms than ``mmap`` are left to fairseq.

    Args:
        data_bin: the folder.
        split: ``train``, ``valid``, ….
        pair: of languages, as in the files' names.
        language: the side.
        symbols: entries of its dictionary.
        end: the number of its end of sentence.
        combine: also the split's further files, as in training.

    Raises:
        InputError: one that is not, by its name.
    """
    for prefix in files_of(data_bin, split, pair, language, combine):
        _check(prefix, symbols, end)


def load_side(
    data_bin: Path, split: str, languages: Tuple[str, str], side: str, dictionary: Dictionary, kind: Optional[str]
) -> Optional[Lines]:
    """One side of a split by itself, of the files of either direction; None: there are none.

    Args:
        data_bin: the folder.
        split: ``train``, ``valid``, ….
        languages: source and target.
        side: one of these, or what else is beside them.
        dictionary: of the side.
        kind: fairseq's ``--dataset-impl``.

    Raises:
        InputError: it is damaged, or of another dictionary.
    """
    for pair in (languages, languages[::-1]):
        name = "-".join(pair)
        check_side(str(data_bin), split, name, side, len(dictionary), dictionary.eos(), combine=False)
        prefix = data_bin / f"{split}.{name}.{side}"
        try:
            lines: Optional[Lines] = load_indexed_dataset(str(prefix), dictionary, kind)
        except (AssertionError, KeyError, ValueError, struct.error) as error:  # fairseq's, of other forms
            raise InputError(f"{prefix}.{{bin,idx}}: {first_line(error)}: {REMEDY}") from error
        if lines is not None:
            return lines
    return None


def _check(prefix: Path, symbols: int, end: int) -> None:
    index, tokens = (prefix.with_name(f"{prefix.name}.{ending}") for ending in ("idx", "bin"))
    content = np.memmap(index, mode="r") if index.stat().st_size else np.zeros(0, dtype=np.uint8)
    if len(content) < HEADER.size or bytes(content[: len(MAGIC)]) != MAGIC:
        if bytes(content[: len(MAGIC)]).startswith(OTHERS):
            return
        raise InputError(f"{index}: no index of a data-bin: {REMEDY}")
    _, version, code, items = HEADER.unpack(bytes(content[: HEADER.size]))
    if version != 1 or code not in _code_to_dtype or len(content) != HEADER.size + 12 * items:
        raise InputError(f"{index}: {len(content):,} bytes cannot be the index of {items:,} items: {REMEDY}")
    if not items:
        raise InputError(f"{index}: holds no line; leave the split out, or make it of a text that has sentences")
    kind = np.dtype(_code_to_dtype[code])
    sizes = np.frombuffer(content, np.int32, items, HEADER.size)
    pointers = np.frombuffer(content, np.int64, items, HEADER.size + 4 * items)
    wanted = 0
    for first in range(0, items, BLOCK):
        ends = wanted + np.cumsum(sizes[first : first + BLOCK], dtype=np.int64) * kind.itemsize
        places = np.append(wanted, ends[:-1])
        if (sizes[first : first + BLOCK] < 1).any() or not np.array_equal(pointers[first : first + BLOCK], places):
            raise InputError(f"{index}: sizes and places of its {items:,} items contradict each other: {REMEDY}")
        wanted = int(ends[-1])
    found = tokens.stat().st_size if tokens.is_file() else 0
    if found != wanted:
        raise InputError(f"{tokens}: {found:,} bytes, of which its index names {wanted:,}: {REMEDY}")
    for first in range(0, items, BLOCK):
        begin = int(pointers[first])
        ends = np.cumsum(sizes[first : first + BLOCK], dtype=np.int64)
        part = np.memmap(tokens, kind, "r", offset=begin, shape=(int(ends[-1]),))
        _check_tokens(tokens, first, part, ends, symbols, end)


def _check_tokens(path: Path, first: int, tokens: np.ndarray, ends: np.ndarray, symbols: int, end: int) -> None:
    """Looks at the tokens of a block of items, which end where ``ends`` says; ``first`` of them is its first item."""
    if int(tokens.max()) >= symbols or int(tokens.min()) < 0:
        place = int(np.argmax((tokens >= symbols) | (tokens < 0)))
        line = first + int(np.searchsorted(ends, place, side="right")) + 1
        raise InputError(
            f"{path}: line {line}: token {int(tokens[place])}, but the dictionary has {symbols:,} symbols: it is "
            f"another one's, or {REMEDY}"
        )
    wrong = np.flatnonzero(tokens[ends - 1] != end)
    if len(wrong):
        line = first + int(wrong[0]) + 1
        raise InputError(f"{path}: line {line}: does not end with the end of sentence: {REMEDY}")

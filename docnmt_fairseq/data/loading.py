"""Loading of the sides of a data-bin, with a check of their files."""

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
HEADER = struct.Struct("<9sQBQ")  # magic, version, token type, number of items
REMEDY = "it is damaged or incomplete; make or copy the data-bin again"


@contextmanager
def split_errors(data_bin: str, split: str, languages: Tuple[str, str]) -> Iterator[None]:
    """Context in which fairseq loads a split: a missing split becomes an error that lists the existing ones."""
    try:
        yield
    except FileNotFoundError as error:
        pairs = ("-".join(languages), "-".join(languages[::-1]))
        splits = sorted({path.name.split(".")[0] for pair in pairs for path in Path(data_bin).glob(f"*.{pair}.*")})
        raise InputError(f"{data_bin}: has no split {split!r}; its splits: {', '.join(splits) or 'none'}") from error


def check_side(data_bin: str, split: str, pair: str, language: str, dictionary: Dictionary, combine: bool) -> None:
    """Checks that the files of one side of a split are complete and, by their last items, of this dictionary.

    fairseq would fail in the middle of an epoch, or train on wrong tokens. Other formats than ``mmap`` are not checked.

    Args:
        data_bin: folder.
        split: ``train``, ``valid``, ….
        pair: language pair as in the file names.
        language: the side.
        dictionary: dictionary of the side.
        combine: also check ``train1``, ``train2``, ….

    Raises:
        InputError: names the bad file.
    """
    for number in itertools.count() if combine else [0]:
        prefix = Path(data_bin) / f"{split}{number or ''}.{pair}.{language}"
        if not Path(f"{prefix}.idx").is_file():
            return
        _check(prefix, dictionary)


def load_side(
    data_bin: Path, split: str, languages: Tuple[str, str], side: str, dictionary: Dictionary, kind: Optional[str]
) -> Optional[Lines]:
    """Loads one side of a split from the files of either direction; None if there are none.

    Args:
        data_bin: folder.
        split: ``train``, ``valid``, ….
        languages: source and target.
        side: source, target, or an extra side.
        dictionary: dictionary of the side.
        kind: fairseq's ``--dataset-impl``.
    """
    for pair in (languages, languages[::-1]):
        name = "-".join(pair)
        check_side(str(data_bin), split, name, side, dictionary, combine=False)
        prefix = data_bin / f"{split}.{name}.{side}"
        try:
            lines: Optional[Lines] = load_indexed_dataset(str(prefix), dictionary, kind)
        except (AssertionError, KeyError, ValueError, struct.error) as error:
            raise InputError(f"{prefix}.{{bin,idx}}: {first_line(error)}: {REMEDY}") from error
        if lines is not None:
            return lines
    return None


def _check(prefix: Path, dictionary: Dictionary) -> None:
    index, tokens = Path(f"{prefix}.idx"), Path(f"{prefix}.bin")
    content = np.memmap(index, mode="r") if index.stat().st_size else np.zeros(0, dtype=np.uint8)
    if len(content) < HEADER.size or bytes(content[: len(MAGIC)]) != MAGIC:
        if bytes(content[: len(MAGIC)]).startswith((b"TNTIDX\x00\x00", b"HUFFIDX\x00\x00")):  # other formats of fairseq
            return
        raise InputError(f"{index}: not an index of a data-bin: {REMEDY}")
    _, version, code, items = HEADER.unpack(bytes(content[: HEADER.size]))
    if version != 1 or code not in _code_to_dtype or len(content) != HEADER.size + 12 * items:
        raise InputError(f"{index}: {len(content):,} bytes cannot be the index of {items:,} items: {REMEDY}")
    if not items:
        raise InputError(f"{index}: contains no line; leave the split out, or make it from text with sentences")
    kind = np.dtype(_code_to_dtype[code])
    sizes = np.frombuffer(content, np.int32, items, HEADER.size)
    expected = int(sizes.sum(dtype=np.int64)) * kind.itemsize
    found = tokens.stat().st_size if tokens.is_file() else 0
    if found != expected:
        raise InputError(f"{tokens}: {found:,} bytes, but its index expects {expected:,}: {REMEDY}")
    last = np.memmap(tokens, kind, "r")[-int(sizes[-100:].sum()) :]
    if int(last.max()) >= len(dictionary) or int(last[-1]) != dictionary.eos():
        raise InputError(f"{tokens}: made with another dictionary, or {REMEDY}")

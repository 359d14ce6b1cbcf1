"""Text files: UTF-8 lines with their numbers, packed files, several outputs that appear together."""

import bz2
import gzip
import logging
import lzma
import os
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Iterator, List, Optional, TextIO, Tuple, cast
from zipfile import BadZipFile

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, atomic_path, atomic_paths

try:
    from backports import zstd  # part of Python from 3.14 on
except ImportError:
    zstd = None  # type: ignore[assignment]

BYTE_ORDER_MARK = "\ufeff"
PACKED = (".gz", ".bz2", ".xz", ".zst")
# Raised when a damaged file is read.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, BadZipFile, zstd.ZstdError if zstd else BadZipFile)

logger = logging.getLogger(__name__)


def read_lines(path: PathLike, strip: Optional[str] = None) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, which may be packed, see :data:`PACKED`.

    A line feed ends a line; in a file of one such line, a carriage return. Other carriage returns are reported.

    Args:
        path: file to read.
        strip: characters removed around each line; None for all white space.
    """
    with open_binary(path) as stream:
        yield from lines_of(stream, path, strip)


def lines_of(stream: BinaryIO, name: PathLike, strip: Optional[str] = None) -> Iterator[str]:
    """Yields the lines of a stream like :func:`read_lines`; ``name`` appears in errors."""
    number = 0
    reported = False
    try:
        for number, raw in enumerate(_raw_lines(stream, name), start=1):
            if not reported and b"\r" in raw.rstrip():
                reported = True
                place = f"{name}:{number}: carriage return inside the line"
                logger.warning(
                    f"{place}, read as a space; if it ends lines, convert the file's line ends to line feeds"
                )
            line = raw.decode("utf-8")
            yield (line if number > 1 else line.lstrip(BYTE_ORDER_MARK)).strip(strip)
    except UnicodeDecodeError as error:
        message = f"not UTF-8 (byte {error.start + 1} of the line); convert or unpack the file"
        raise InputError.at(name, number, message) from error
    except DAMAGED as error:
        raise InputError.at(name, number + 1, f"damaged from this line on: {error}") from error


def _raw_lines(stream: BinaryIO, name: PathLike) -> Iterator[bytes]:
    """Yields the lines of a stream of text."""
    first, second = stream.readline(), stream.readline()
    if b"\0" in first:  # as in archives
        raise InputError(f"{name}: not text; unpack it (packed text may end in {', '.join(PACKED)})")
    if not second:  # one line, or lines that end with carriage returns
        yield from first.splitlines()
        return
    yield from (first, second)
    yield from stream


def packing_of(name: PathLike) -> str:
    """Returns the suffix of a packed file, one of :data:`PACKED` as written in the name; "" for other files."""
    return next((str(name)[-len(end) :] for end in PACKED if str(name).lower().endswith(end)), "")


def unpacked_name(name: str) -> str:
    """Returns the file name without the suffix of a packed file."""
    return name.removesuffix(packing_of(name))


def open_binary(path: PathLike) -> BinaryIO:
    """Opens a file for reading; packed files are unpacked on the fly."""
    packing = packing_of(path).lower()
    if packing == ".zst" and zstd is None:
        raise InputError(f"{path}: needs pip install 'docnmt_fairseq[zstd]'")
    openers = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": zstd and zstd.open}
    opener: Any = openers.get(packing, open)
    return cast(BinaryIO, opener(path, "rb"))


def existing_file(path: PathLike) -> Path:
    """Returns a file, or its packed form if only that exists."""
    candidates = [Path(path), *(Path(f"{path}{ending}") for ending in PACKED)]
    return next((candidate for candidate in candidates if candidate.exists()), candidates[0])


@contextmanager
def atomic_files(*paths: PathLike) -> Iterator[List[TextIO]]:
    """Opens UTF-8 text files for writing that appear together when the block ends without an error."""
    with atomic_paths(*paths) as temporary, ExitStack() as stack:
        yield [stack.enter_context(open(path, "w", encoding="utf-8", newline="\n")) for path in temporary]


@contextmanager
def npy_on_disk(path: PathLike, shape: Tuple[int, ...], dtype: type) -> Iterator[np.ndarray]:
    """Memory-maps a new ``.npy`` file of zeros for writing; it appears when the block ends without an error."""
    with atomic_path(path) as temporary:
        array = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
        if hasattr(os, "posix_fallocate"):  # a full disk is an OSError here, and SIGBUS in a sparse memory map
            with open(temporary, "r+b") as stream:
                os.posix_fallocate(stream.fileno(), 0, Path(temporary).stat().st_size)
        yield array
        array.flush()

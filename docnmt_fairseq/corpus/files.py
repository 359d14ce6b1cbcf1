"""Reading and writing text files: lines with their numbers, bad UTF-8 located, nothing ever half-written."""

import gzip
import os
import shutil
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Iterator, List, Optional, TextIO, Union, cast
from zipfile import BadZipFile

from docnmt_fairseq.errors import InputError

PathLike = Union[str, Path]
BYTE_ORDER_MARK = "\ufeff"
DAMAGED = (OSError, EOFError, zlib.error, BadZipFile)  # what reading a damaged file raises


def read_lines(path: PathLike, strip: Optional[str] = None) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, which may be gzipped (``.gz``).

    Only a line feed ends a line, so that line numbers are those of every other tool, whatever the text holds.

    Args:
        path: the file.
        strip: characters to remove around each line; None for all white space.

    Raises:
        InputError: the file cannot be read, or a line is not UTF-8.
    """
    with open_binary(path) as stream:
        yield from lines_of(stream, path, strip)


def lines_of(stream: BinaryIO, name: PathLike, strip: Optional[str] = None) -> Iterator[str]:
    """Yields the lines of a stream as :func:`read_lines` does; ``name`` is what errors call it."""
    number = 0
    try:
        for number, raw in enumerate(stream, start=1):
            line = raw.decode("utf-8")
            yield (line if number > 1 else line.lstrip(BYTE_ORDER_MARK)).strip(strip)
    except UnicodeDecodeError as error:
        raise InputError.at(
            name, number, f"not UTF-8 (byte {error.start + 1} of the line); convert the file to UTF-8"
        ) from error
    except DAMAGED as error:
        raise InputError.at(name, number + 1, f"damaged from here on: {error}") from error


def open_binary(path: PathLike) -> BinaryIO:
    """Returns a file opened for reading; one whose name ends in ``.gz`` is unpacked on the way.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        return cast(BinaryIO, gzip.open(path)) if str(path).endswith(".gz") else open(path, "rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def partial_path(path: PathLike) -> Path:
    """Returns where a file or folder is written until it is complete."""
    path = Path(path)
    return path.with_name(path.name + ".partial")


@contextmanager
def atomic_files(*paths: PathLike) -> Iterator[List[TextIO]]:
    """Opens files for writing that appear under their names together, when the block ends without an error.

    Raises:
        InputError: a file cannot be written.
    """
    partials = [partial_path(path) for path in paths]
    try:
        with ExitStack() as stack:
            streams: List[TextIO] = []
            for path, partial in zip(paths, partials):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                streams.append(stack.enter_context(open(partial, "w", encoding="utf-8", newline="\n")))
            yield streams
        for path, partial in zip(paths, partials):
            os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{error.filename or paths[0]}: cannot be written: {error.strerror}") from error
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)


def copy_file(original: PathLike, path: PathLike) -> None:
    """Copies a whole file, or nothing."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(original, partial_path(path))
    os.replace(partial_path(path), path)


def atomic_write_bytes(path: PathLike, content: bytes) -> None:
    """Writes a whole file at once, or not at all.

    Raises:
        InputError: it cannot be written.
    """
    partial = partial_path(path)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be written: {error.strerror}") from error

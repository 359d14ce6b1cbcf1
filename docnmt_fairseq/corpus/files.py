"""Reading and writing text files: lines with their numbers, bad UTF-8 located, nothing ever half-written."""

import gzip
import os
import shutil
import stat
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, TextIO, Tuple, Union, cast
from zipfile import BadZipFile

from docnmt_fairseq.corpus.arrow import open_zst
from docnmt_fairseq.errors import InputError

PathLike = Union[str, Path]
BUFFERED = 2**24  # characters of many files that are in memory
LONGEST = 2**26  # bytes of a line: a small packed file may hold one that no memory does
OPEN = 64  # of many files that are open
BYTE_ORDER_MARK = "\ufeff"
PACKED: Dict[str, Callable[[PathLike], BinaryIO]] = {".gz": cast(Any, gzip.open), ".zst": open_zst}
DAMAGED = (OSError, EOFError, zlib.error, BadZipFile)  # what reading a damaged file raises


def read_lines(path: PathLike, strip: Optional[str] = None) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, which may be packed (``.gz``, ``.zst``).

    Only a line feed ends a line, so that line numbers are those of every other tool, whatever the text holds.

    Args:
        path: the file.
        strip: characters to remove around each line; None for all white space.

    Raises:
        InputError: the file cannot be read, or a line is not UTF-8, or longer than :data:`LONGEST`.
    """
    with open_binary(path) as stream:
        yield from lines_of(stream, path, strip)


def lines_of(stream: BinaryIO, name: PathLike, strip: Optional[str] = None) -> Iterator[str]:
    """Yields the lines of a stream as :func:`read_lines` does; ``name`` is what errors call it."""
    number = 0
    try:
        for number, raw in enumerate(iter(lambda: stream.readline(LONGEST + 1), b""), start=1):
            if len(raw) > LONGEST:
                raise InputError.at(
                    name, number, f"longer than {LONGEST >> 20} MiB; divide the line, or is it no text?"
                )
            line = raw.decode("utf-8")
            yield (line if number > 1 else line.lstrip(BYTE_ORDER_MARK)).strip(strip)
    except UnicodeDecodeError as error:
        raise InputError.at(
            name, number, f"not UTF-8 (byte {error.start + 1} of the line); convert the file to UTF-8"
        ) from error
    except DAMAGED as error:
        raise InputError.at(name, number + 1, f"damaged from here on: {error}") from error


def packing_of(name: PathLike) -> str:
    """The end of a file's name that says how it is packed, of :data:`PACKED`; "": it is not."""
    return next((str(name)[-len(end) :] for end in PACKED if str(name).lower().endswith(end)), "")


def unpacked_name(name: str) -> str:
    """The name of what a packed file holds; of another file its own."""
    return name.removesuffix(packing_of(name))


def open_binary(path: PathLike) -> BinaryIO:
    """A file opened for reading; one whose name has a :func:`packing_of` is unpacked on the way.

    Raises:
        InputError: it cannot be opened; the library that unpacks it is not installed.
    """
    try:
        unpacking = PACKED.get(packing_of(path).lower())
        return open(path, "rb") if unpacking is None else unpacking(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def is_stream(path: PathLike) -> bool:
    """Whether it is a pipe or a device: what it holds is gone when it was read."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # said by who opens it
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def refuse_streams(*paths: PathLike) -> None:
    """Does nothing if all can be read more than once.

    Raises:
        InputError: one cannot.
    """
    for path in filter(is_stream, paths):
        raise InputError(f"{path}: is a pipe or a device, which can be read only once; give a file")


def partial_path(path: PathLike) -> Path:
    """Where a file or folder is written until it is complete."""
    path = Path(path)
    return path.with_name(path.name + ".partial")


def led_to(path: PathLike) -> Path:
    """Where a file or folder is that a link may stand for; to write there leaves the link."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


@contextmanager
def atomic_files(*paths: PathLike) -> Iterator[List[TextIO]]:
    """Opens files for writing that appear under their names together, when the block ends without an error.

    Raises:
        InputError: a file cannot be written.
    """
    with _appearing(paths) as partials, ExitStack() as stack:
        yield [stack.enter_context(open(partial, "w", encoding="utf-8", newline="\n")) for partial in partials]


class ManyFiles:
    """Texts that grow in turn, any number of them: each is opened only when a lot has come together.

    Args:
        paths: of the files, which are emptied.
    """

    def __init__(self, paths: Sequence[Path]):
        self._paths, self._characters = paths, 0
        self._texts: List[List[str]] = [[] for _ in paths]
        for path in paths:
            path.write_bytes(b"")

    def write(self, number: int, text: str) -> None:
        """Appends to the file of a number."""
        self._texts[number].append(text)
        self._characters += len(text)
        if self._characters >= BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Writes what has come together."""
        for path, texts in zip(self._paths, self._texts):
            if texts:
                with open(path, "a", encoding="utf-8", newline="\n") as stream:
                    stream.writelines(texts)
                texts.clear()
        self._characters = 0


@contextmanager
def written_by_others(path: PathLike) -> Iterator[Path]:
    """Gives where somebody else's function is to write a file that appears when the block ends without an error.

    Raises:
        InputError: it cannot be written.
    """
    with _appearing([path]) as (partial,):
        yield partial


@contextmanager
def written_folder(path: PathLike) -> Iterator[Path]:
    """Gives an empty folder that stands in the place of ``path`` when the block ends without an error.

    Raises:
        InputError: it, or a file in it, cannot be written.
    """
    path = led_to(path)
    partial = partial_path(path)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        if path.is_dir():
            shutil.rmtree(path)
        partial.rename(path)
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def many_atomic_files(paths: Sequence[PathLike]) -> Iterator[ManyFiles]:
    """As :func:`atomic_files`, for more files than a process may have open.

    Raises:
        InputError: a file cannot be written.
    """
    with _appearing(paths) as partials:
        files = ManyFiles(partials)
        yield files
        files.flush()


@contextmanager
def _appearing(paths: Sequence[PathLike]) -> Iterator[List[Path]]:
    """Gives the paths under which files are written until the block ends."""
    try:
        places = [_place(Path(path)) for path in paths]
        for path, _ in places:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield [partial for _, partial in places]
            for path, partial in places:
                os.replace(partial, path)
        finally:
            for path, partial in places:
                if partial != path:
                    partial.unlink(missing_ok=True)
    except FileExistsError as error:
        raise InputError(f"{paths[0]}: cannot be written: {error.filename} is a file; give a folder") from error
    except OSError as error:
        raise InputError(f"{error.filename or paths[0]}: cannot be written: {error.strerror}") from error


def _place(path: Path) -> Tuple[Path, Path]:
    """Where a link leads to that may be in a file's place, and where the file is written until it is complete.

    A device or a pipe takes it at once: another file in its place would end it for all.
    """
    if path.is_dir():
        raise InputError(f"{path}: cannot be written: is a folder; give a file")
    if path.exists() and not path.is_file():
        return path, path
    path = led_to(path)
    return path, partial_path(path)


class FilesByTurns:
    """Files that are read by turns, any number of them, only some of which are open at a time."""

    def __init__(self) -> None:
        self._open: Dict[Path, BinaryIO] = {}  # the one that was asked for last is the last
        self._left_at: Dict[Path, int] = {}

    def __enter__(self) -> "FilesByTurns":
        return self

    def __exit__(self, *error: object) -> None:
        for stream in self._open.values():
            stream.close()

    def opened(self, path: Path) -> BinaryIO:
        """A file, where it was left; to be asked for anew whenever another one may have been."""
        stream = self._open.pop(path, None)
        if stream is None:
            if len(self._open) >= OPEN:
                longest_ago = next(iter(self._open))
                with self._open.pop(longest_ago) as closed:
                    self._left_at[longest_ago] = closed.tell()
            stream = open(path, "rb")  # noqa: SIM115  (closed above, or in the end)
            stream.seek(self._left_at.get(path, 0))
        self._open[path] = stream
        return stream


def copy_file(original: PathLike, path: PathLike) -> None:
    """Copies a whole file, or nothing.

    Raises:
        InputError: it cannot be read or written.
    """
    with written_by_others(path) as partial:
        shutil.copyfile(original, partial)


def atomic_write_bytes(path: PathLike, content: bytes) -> None:
    """Writes a whole file at once, or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with written_by_others(path) as partial:
        partial.write_bytes(content)

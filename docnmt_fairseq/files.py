"""Atomic writing, fingerprints and locks of files, for the whole package."""

import hashlib
import json
import os
import shutil
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Union

from filelock import FileLock, Timeout

from docnmt_fairseq.errors import InputError

PathLike = Union[str, Path]

LOCK_TIMEOUT = 3.0  # seconds, enough for the exit of a killed process


# --- Atomic writing ---


def partial_path(path: PathLike) -> Path:
    """Temporary name of a file or folder until it is complete."""
    path = Path(path)
    return path.with_name(path.name + ".partial")


@contextmanager
def atomic_paths(*paths: PathLike) -> Iterator[List[Path]]:
    """Yields temporary paths; their files get the final names together when the block ends without an error.

    Symbolic links are followed and stay. Pipes and devices are written directly.

    Raises:
        InputError: a file cannot be written; existing files stay as they are.
    """
    targets = [_link_target(Path(path)) for path in paths]
    partials = [target if is_stream(target) else partial_path(target) for target in targets]
    with write_errors(paths[0]):
        for target in targets:
            if target.is_dir():  # os.replace would fail after the work
                raise InputError(f"{target}: cannot be written: is a folder; give a file")
            target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partials
            for target, partial in zip(targets, partials):
                os.replace(partial, target)
        finally:
            for target, partial in zip(targets, partials):
                if partial != target:
                    partial.unlink(missing_ok=True)


@contextmanager
def atomic_path(path: PathLike) -> Iterator[Path]:
    """Yields a temporary path, see :func:`atomic_paths`."""
    with atomic_paths(path) as (partial,):
        yield partial


@contextmanager
def atomic_folder(path: PathLike) -> Iterator[Path]:
    """Yields an empty folder that replaces ``path`` when the block ends without an error.

    Raises:
        InputError: the folder or a file in it cannot be written.
    """
    path = _link_target(Path(path))
    partial = partial_path(path)
    shutil.rmtree(partial, ignore_errors=True)
    with write_errors(path):
        try:
            partial.mkdir(parents=True)
            yield partial
            if path.is_dir():
                shutil.rmtree(path)
            partial.rename(path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def write_errors(path: PathLike) -> Iterator[None]:
    """Context in which errors of the system become an :class:`InputError` that names the file, otherwise ``path``."""
    try:
        yield
    except OSError as error:
        remedy = " as a file; give a folder" if isinstance(error, FileExistsError) else ""
        raise InputError(f"{error.filename or path}: cannot be written: {error.strerror}{remedy}") from error


def write_bytes(path: PathLike, content: bytes) -> None:
    """Writes a file atomically; raises :class:`InputError` if it cannot be written."""
    with atomic_path(path) as partial:
        partial.write_bytes(content)


def write_json(path: PathLike, value: Any, indent: Optional[int] = None, sort_keys: bool = True) -> None:
    """Writes a JSON file atomically, in UTF-8; parts of file names that are not UTF-8 are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys)
    write_bytes(path, f"{text}\n".encode("utf-8", "backslashreplace"))


def read_json(path: PathLike) -> Any:
    """Returns the content of a JSON file; None if it is missing or damaged."""
    try:
        return json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def copy_file(original: PathLike, path: PathLike) -> None:
    """Copies a file atomically; raises :class:`InputError` if it cannot be read or written."""
    with atomic_path(path) as partial:
        shutil.copyfile(original, partial)


def _link_target(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def is_stream(path: PathLike) -> bool:
    """Returns True for pipes and devices, which can be read only once and must not be replaced by a regular file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def refuse_streams(*paths: PathLike) -> None:
    """Raises :class:`InputError` if a path is a pipe or a device, for files that are read more than once."""
    for path in filter(is_stream, paths):
        raise InputError(f"{path}: is a pipe or a device, which can be read only once; give a file")


# --- Fingerprints ---


def sha256(path: PathLike) -> str:
    """SHA-256 of the content of a file; for a folder, of the names and hashes of its files.

    Raises:
        InputError: it is a pipe or device.
    """
    path = Path(path)
    refuse_streams(path)
    if path.is_dir():
        digest = hashlib.sha256()
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            digest.update(f"{file.relative_to(path)}\n{sha256(file)}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def identity(path: PathLike) -> Optional[List[int]]:
    """Size in bytes and modification time in ns of a file; None if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def fingerprint(settings: Mapping[str, Any], files: Iterable[PathLike] = ()) -> str:
    """SHA-256 of everything that a result depends on, to detect results of other inputs.

    Args:
        settings: options and hashes of contents, as JSON values.
        files: input files, compared by path, size and modification time.
    """
    value = [dict(settings), {str(path): identity(path) for path in files}]
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# --- Locks ---


@contextmanager
def file_lock(path: PathLike) -> Iterator[None]:
    """Holds the exclusive lock of an output file, ``.NAME.lock`` next to it; see :func:`folder_lock`."""
    path = _link_target(Path(path))
    with _lock(path.with_name(f".{path.name}.lock"), path):
        yield


@contextmanager
def folder_lock(folder: PathLike) -> Iterator[None]:
    """Holds the exclusive lock of an output folder, ``.lock`` in it; creates the folder.

    Raises:
        InputError: another process holds it.
    """
    with _lock(Path(folder) / ".lock", Path(folder)):
        yield


@contextmanager
def _lock(file: Path, path: Path) -> Iterator[None]:
    """Holds a lock, which the system releases when the process ends, however it ends."""
    lock = FileLock(file)
    with write_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=LOCK_TIMEOUT)
        except Timeout:
            raise InputError(f"{path}: in use by another process; wait for its end, or end it") from None
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.release()

"""Checkpoints as files: there whole or not at all, whenever a training dies; damaged ones are named.

fairseq 0.12 copies over ``checkpoint_last.pt`` in place, and after a failed write (a full disk) goes on in the same
file: killed or out of space at the wrong moment, a training left a checkpoint that nothing could go on from. PyTorch
writes checksums but does not look at them.
"""

import logging
import os
import shutil
import struct
import time
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, Optional
from unittest import mock

import torch

from docnmt_fairseq.errors import InputError, first_line

TRIES = 3  # file systems of networks fail for a moment
PAUSE = 2.5  # seconds between them
NO_CHECKPOINT = "not a checkpoint, or one that cannot be loaded safely"
UNFINISHED = ".tmp"  # what a file is called until it is whole

logger = logging.getLogger(__name__)


def write_whole(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Writes a file that appears when all of it is on the disk.

    Args:
        path: of the file.
        write: writes its content.

    Raises:
        InputError: it cannot be written, also not on a further try; the former file is left as it was.
    """
    unfinished = Path(path + UNFINISHED)
    for left in reversed(range(TRIES)):
        try:
            with open(unfinished, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(unfinished, path)
            return
        except (OSError, RuntimeError) as error:  # PyTorch's writer hides the system's reason behind the latter
            with suppress(OSError):  # of a file system that fails, or was made read-only, this is an error, too
                unfinished.unlink()
            if not left:
                raise InputError(f"{path}: cannot be written: {_reason(error, path)}") from error
            logger.warning(f"{path}: cannot be written ({error}); tried again in {PAUSE} seconds")
            time.sleep(PAUSE)


def _reason(error: Exception, path: str) -> str:
    """Why nothing could be written, and what to do."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"{folder} is gone; make it again and start the training again, it goes on from the last checkpoint"
    reason = error.strerror if isinstance(error, OSError) else first_line(error)
    megabytes = shutil.disk_usage(folder).free >> 20
    return f"{reason} ({megabytes:,} MB are free); make room and start again, it goes on from the last whole checkpoint"


def save(checkpoint: Dict[str, Any], path: str) -> None:
    """Saves a checkpoint, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    write_whole(path, lambda stream: torch.save(checkpoint, stream))


def copy(original: str, path: str) -> None:
    """Copies a checkpoint, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """

    def write(stream: IO[bytes]) -> None:
        with open(original, "rb") as opened:
            shutil.copyfileobj(opened, stream, 1 << 20)

    write_whole(path, write)


def check_whole(path: str) -> None:
    """Compares the checksums of what a checkpoint holds, which PyTorch writes and does not read.

    Raises:
        InputError: something in it is not what was written. Files of other forms are left to PyTorch.
    """
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, struct.error) as error:
        raise InputError(f"{path}: damaged: {error}") from error
    if bad is not None:
        raise InputError(f"{path}: damaged: its checksum of {bad} is that of something else")


@contextmanager
def _told_if_none(path: Any) -> Iterator[None]:
    """Inside the block, what PyTorch cannot read is told by its file; what fairseq makes of the rest is not caught.

    Raises:
        InputError: the file is no checkpoint.
    """
    read = torch.load

    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return read(*args, **kwargs)
        except MemoryError:
            raise
        except Exception as error:  # whatever a file that is none happens to cause
            raise InputError(f"{path}: {NO_CHECKPOINT} ({first_line(error)})") from error

    with mock.patch.object(torch, "load", told):
        yield


def patch_fairseq() -> None:
    """Lets fairseq write and read checkpoints so in this process."""
    from fairseq import checkpoint_utils
    from fairseq.file_io import PathManager

    saves, copies = checkpoint_utils.torch_persistent_save, PathManager.copy
    load, verifies = checkpoint_utils.load_checkpoint_to_cpu, checkpoint_utils.verify_checkpoint_directory

    def verified(save_dir: str) -> None:
        try:
            verifies(save_dir)
        except OSError as error:
            raise InputError(f"--save-dir {save_dir}: cannot be written: {error.strerror}") from error

    def saved(obj: Any, filename: Any, async_write: bool = False) -> None:
        if async_write or not isinstance(filename, str) or not PathManager.supports_rename(filename):
            saves(obj, filename, async_write)
        else:
            save(obj, filename)

    def copied(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        if not PathManager.supports_rename(dst_path):
            return bool(copies(src_path, dst_path, overwrite))
        copy(src_path, dst_path)
        return True

    def loaded(
        path: Any, arg_overrides: Optional[Dict[str, Any]] = None, load_on_all_ranks: Optional[bool] = None
    ) -> Dict[str, Any]:
        if load_on_all_ranks is None:  # only fairseq's trainer says on which ranks
            check_whole(PathManager.get_local_path(path))
            with _told_if_none(path):
                return load(path, arg_overrides)
        remedy = (
            "name another one: --restore-file, or --finetune-from-model if that named it; "
            "without any in --save-dir training begins anew"
        )
        try:
            check_whole(PathManager.get_local_path(path))
            return load(path, arg_overrides, load_on_all_ranks)
        except InputError as error:
            raise InputError(f"{error}; {remedy}") from error
        except MemoryError:
            raise
        except Exception as error:  # whatever a file that is none happens to cause
            reason = f"damaged, or no checkpoint that is safe to load ({first_line(error)})"
            raise InputError(f"{path}: {reason}; {remedy}") from error

    checkpoint_utils.torch_persistent_save, PathManager.copy = saved, staticmethod(copied)
    checkpoint_utils.load_checkpoint_to_cpu, checkpoint_utils.verify_checkpoint_directory = loaded, verified

"""Places that one process has for itself, for as long as it or something that it started lives.

A place's lock is a file in it, or beside it, that the process holds by ``flock``. So it ends with the process, however
that ends, and a file that a killed one left holds nobody up. NFS passes such locks on between machines (version 4, or 3
with its lock daemon); a file system that knows none is warned of.
"""

import contextlib
import glob
import json
import logging
import os
import shutil
import socket
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Iterator, List, Optional, TextIO

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import parse_json

PATIENCE = 3.0  # seconds that what a killed process left at work has to end
PAUSE = 0.1  # seconds between two tries

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """Who has a lock, as its file says.

    Attributes:
        process: number.
        host: where it runs.
        since: when it took it.
        together: with whom it holds it.
    """

    process: int
    host: str
    since: str
    together: str


class NoLocksError(Exception):
    """The system, or the file system, knows no locks."""


_not_inherited: List[TextIO] = []  # lock files that forked processes close


def in_folder(folder: Path) -> Path:
    """The lock file of a folder."""
    return folder / ".lock"


def beside(path: Path) -> Path:
    """The lock file of a file."""
    return path.with_name(f".{path.name}.lock")


@contextlib.contextmanager
def holding(
    lock: Path, place: str, *, patience: Optional[float] = None, shared_by: str = "", inherited: bool = True
) -> Iterator[None]:
    """Holds a place.

    Args:
        lock: its file, of :func:`in_folder` or :func:`beside`; its folder is made if it is not there.
        place: what messages call it.
        patience: seconds to wait for somebody else's end; None: :data:`PATIENCE`.
        shared_by: those that say the same may hold it together; nothing: it is held alone.
        inherited: processes that are forked, or started with ``close_fds=False``, hold it, too, until they end.

    Raises:
        InputError: somebody else is at work there; names the process.
    """
    made = not lock.parent.exists()
    stream = _held(lock, place, PATIENCE if patience is None else patience, shared_by)
    if stream is None:
        yield
        return
    if inherited:
        os.set_inheritable(stream.fileno(), True)
    else:
        _not_inherited.append(stream)
    try:
        yield
    finally:
        if not inherited:
            _not_inherited.remove(stream)
        if _takes(stream, alone=True):  # nobody holds it together with this one
            lock.unlink(missing_ok=True)
        stream.close()
        if made:
            with contextlib.suppress(OSError):  # something is in it now
                lock.parent.rmdir()


@contextlib.contextmanager
def workplace(path: Path) -> Iterator[Path]:
    """A folder beside a file, in which one process makes the file before it puts it into its place.

    It is gone afterwards; what a killed process left of such is removed by the next one.
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if _is_left(left):
            shutil.rmtree(left, ignore_errors=True)
    made = tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent)
    with made as folder, open(in_folder(Path(folder)), "w", encoding="utf-8") as stream:
        with contextlib.suppress(NoLocksError):
            _takes(stream, alone=True)
        yield Path(folder)


def _is_left(folder: Path) -> bool:
    """Whether nobody is at work any more in a folder of :func:`workplace`."""
    try:
        with open(in_folder(folder), encoding="utf-8") as stream:
            return _takes(stream, alone=True)
    except (OSError, NoLocksError):
        return False


def _held(lock: Path, place: str, patience: float, shared_by: str) -> Optional[TextIO]:
    """The lock file, held; None: nobody can hold it.

    Raises:
        InputError: somebody else does.
    """
    until = time.monotonic() + patience
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            stream = open(lock, "a+", encoding="utf-8")  # noqa: SIM115  (who holds it closes it)
        except FileExistsError as error:
            raise InputError(f"{place}: {lock.parent} is a file; give a folder") from error
        except OSError as error:
            raise InputError(f"{place}: {lock} cannot be written: {error.strerror}") from error
        try:
            if _entered(lock, stream, shared_by):
                return stream
        except NoLocksError as error:
            stream.close()
            logger.warning(f"{lock}: cannot be locked ({error}); see to it that no two processes are at work there")
            return None
        except OSError as error:  # there are locks, but no room for the file
            with contextlib.suppress(OSError):  # closing writes again what could not be written
                stream.close()
            raise InputError(f"{place}: {lock} cannot be written: {error.strerror}") from error
        told = _told(stream)
        stream.close()
        if time.monotonic() > until:
            raise InputError(f"{place}: {told} is at work there; wait for its end, or end it, and start again")
        time.sleep(PAUSE)


def _entered(lock: Path, stream: TextIO, shared_by: str) -> bool:
    """Whether the lock could be taken; if so, the file says who has it."""
    alone = _takes(stream, alone=True)
    if not alone and not (shared_by and _takes(stream, alone=False)):
        return False
    if not _is_there(lock, stream):  # its holder has just removed it
        return False
    holders = [] if alone else _holders(stream)
    if alone:
        stream.truncate(0)
    elif not holders or holders[0].together != shared_by:
        return False
    own = Holder(os.getpid(), socket.gethostname(), time.strftime("%F %T"), shared_by)
    stream.write(json.dumps(asdict(own)) + "\n")
    stream.flush()
    return not (alone and shared_by) or _takes(stream, alone=False)


def _takes(stream: TextIO, alone: bool) -> bool:
    """Whether the lock of an opened file can be had now, alone or together with others.

    Raises:
        NoLocksError: by nobody, here.
    """
    try:
        import fcntl  # not every system has it

        fcntl.flock(stream, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, ImportError) as error:
        raise NoLocksError(str(error)) from error
    return True


def _is_there(lock: Path, stream: TextIO) -> bool:
    try:
        return os.path.samestat(lock.stat(), os.fstat(stream.fileno()))
    except FileNotFoundError:
        return False


def _holders(stream: TextIO) -> List[Holder]:
    """Who took the lock since nobody had it; fewer where they have not said so yet."""
    stream.seek(0)
    found = []
    with contextlib.suppress(ValueError, TypeError):
        for line in stream:
            found.append(Holder(**parse_json(line)))
    return found


def _told(stream: TextIO) -> str:
    """Who has the lock, for messages."""
    holders = _holders(stream)
    if not holders:
        return "another process"
    return f"process {holders[-1].process} on {holders[-1].host} (since {holders[-1].since})"


def _leave_to_parent() -> None:
    for stream in _not_inherited:
        stream.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)

"""Translated files that grow document by document, survive a crash, and appear under their names when complete.

Beside ``NAME.partial`` stands ``NAME.partial.json``: how many documents of the original are in it, how many bytes these
are, and a hash of the documents. So a translation goes on only with the text and the options that it was begun with.
"""

import hashlib
import json
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Iterator, List, Mapping, Optional, Protocol, TypeVar

from docnmt_fairseq.corpus.files import atomic_write_bytes, partial_path
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json
from docnmt_fairseq.translate.begun import differing
from docnmt_fairseq.translate.formats import Document
from docnmt_fairseq.translate.parts import Part, table_of

D = TypeVar("D", bound=Document)


@dataclass
class Journal:
    """What of a file is translated.

    Attributes:
        documents: their number.
        bytes: of their translations, and of what is written beside these.
        source: hash of their lines.
        settings: that the translations depend on.
    """

    documents: int
    bytes: List[int]
    source: str
    settings: Mapping[str, str]


class Output(Protocol):
    """Where the translated documents of one file go.

    Attributes:
        finished: whether the file is complete.
    """

    finished: bool

    def remaining(self, documents: Iterator[D]) -> Iterator[D]:
        """Those that are not translated yet."""

    def add(self, document: Document, *contents: bytes) -> None:
        """Writes the next document, and what is written beside it."""

    def save(self) -> None:
        """Makes sure that what was added survives."""

    def finish(self) -> None:
        """Ends the file, which is complete."""

    def stop(self) -> None:
        """Ends the work; the file is not complete."""


class StandardOutput:
    """Standard output."""

    finished = False

    def remaining(self, documents: Iterator[D]) -> Iterator[D]:
        """See :class:`Output`."""
        return documents

    def add(self, document: Document, *contents: bytes) -> None:
        """See :class:`Output`.

        Raises:
            InputError: nobody reads it any more.
        """
        try:
            sys.stdout.buffer.write(contents[0])
            sys.stdout.buffer.flush()
        except OSError as error:
            raise InputError(f"standard output: cannot be written: {error.strerror}") from error

    def save(self) -> None:
        """See :class:`Output`."""

    def finish(self) -> None:
        """See :class:`Output`."""

    def stop(self) -> None:
        """See :class:`Output`."""


class FileOutput:
    """A file, and perhaps the table of its scores beside it.

    Args:
        target: its name.
        settings: that the translations depend on.
        resume: go on with what was translated before.
        scores: whether there is a table, to which what is added beside the translations goes.
        part: what the file is where it is a part of one.

    Raises:
        InputError: it was begun with other settings.
    """

    def __init__(
        self,
        target: Path,
        settings: Mapping[str, str],
        resume: bool,
        scores: bool = False,
        part: Optional[Part] = None,
    ):
        self.target, self.journal_path, self.part = target, journal_path(target), part
        self.targets = _targets(target, 2 if scores else 1)
        self.partials = list(map(partial_path, self.targets))
        self.journal = Journal(0, [0 for _ in self.targets], "", dict(settings))
        self._hash = hashlib.sha256()
        self._streams: List[BinaryIO] = []
        self.finished = False
        found = read_journal(target) if resume else None
        if found is not None:
            if other := differing(settings, found.settings):
                raise InputError(
                    f"--resume: {self.partials[0]} was begun with another --{other[0]} "
                    f"({found.settings.get(other[0], 'none')}); give the same, or begin anew with --force"
                )
            self.journal = found

    def remaining(self, documents: Iterator[D]) -> Iterator[D]:
        """See :class:`Output`.

        Raises:
            InputError: the text has changed where it was translated already.
        """
        for _ in range(self.journal.documents):
            document = next(documents, None)
            if document is not None:
                self._hash.update(_bytes_of(document))
        if self.journal.documents and self._hash.hexdigest() != self.journal.source:
            raise InputError(
                f"--resume: the text of {self.partials[0]} was another one up to where it goes on; --force begins anew"
            )
        return documents

    def add(self, document: Document, *contents: bytes) -> None:
        """See :class:`Output`.

        Raises:
            InputError: the file cannot be written.
        """
        with _said(self.partials[0]):
            self._open()
            for stream, content in zip(self._streams, contents):
                stream.write(content)
        self._hash.update(_bytes_of(document))
        self.journal.documents += 1
        self.journal.bytes = [size + len(content) for size, content in zip(self.journal.bytes, contents)]

    def save(self) -> None:
        """See :class:`Output`."""
        if self._streams:
            with _said(self.partials[0]):
                for stream in self._streams:
                    stream.flush()
                    os.fsync(stream.fileno())
            self.journal.source = self._hash.hexdigest()
            atomic_write_bytes(self.journal_path, json.dumps(asdict(self.journal)).encode())

    def finish(self) -> None:
        """See :class:`Output`."""
        with _said(self.target):
            self._open()
            self._close()
            if self.part is not None:
                self.target.unlink(missing_ok=True)  # of another work, which the record would not tell of
                self.part.write_record()
            for partial, target in reversed(list(zip(self.partials, self.targets))):
                os.replace(partial, target)
            self.journal_path.unlink(missing_ok=True)
        self.finished = True

    def stop(self) -> None:
        """See :class:`Output`."""
        if self._streams:
            with suppress(OSError):  # on a full disk; what is not written yet is in no journal
                self._close()
            if not self.journal_path.exists():  # nothing in them can be gone on with
                for partial in self.partials:
                    partial.unlink(missing_ok=True)

    def _open(self) -> None:
        """Opens the unfinished files, cut off behind the last document that is known to be whole."""
        if self._streams:
            return
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if not self.journal.documents:
            self.journal_path.unlink(missing_ok=True)
        for target, partial, size in zip(self.targets, self.partials, self.journal.bytes):
            if self.journal.documents:
                os.replace(_grown(target), partial)
            stream = open(partial, "r+b" if self.journal.documents else "wb")  # noqa: SIM115  (finish or stop closes it)
            self._streams.append(stream)
            stream.truncate(size)
            stream.seek(size)

    def _close(self) -> None:
        streams, self._streams = self._streams, []
        with ExitStack() as stack:
            for stream in streams:
                stack.callback(stream.close)


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Inside the block, what the system refuses is an :class:`InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _bytes_of(document: Document) -> bytes:
    return "".join(f"{line}\n" for line in document.lines).encode("utf-8", "surrogatepass")


def _targets(target: Path, number: int) -> List[Path]:
    """The files that grow together, the first or all of them."""
    return [target, table_of(target)][:number]


def _grown(target: Path) -> Path:
    """Where what there is of an incomplete translation's file stands: under its name, if it ended between two."""
    partial = partial_path(target)
    return partial if partial.exists() else target


def journal_path(target: Path) -> Path:
    """Where it stands what of a file is translated."""
    partial = partial_path(target)
    return partial.with_name(f"{partial.name}.json")


def read_journal(target: Path) -> Optional[Journal]:
    """What of a file is translated; None: nothing that could be gone on with."""
    try:
        journal = Journal(**parse_json(journal_path(target).read_bytes()))
        files = [partial_path(target), *map(_grown, _targets(target, len(journal.bytes))[1:])]  # it itself is last
        whole = len(files) == len(journal.bytes)
        return journal if whole and all(f.stat().st_size >= n for f, n in zip(files, journal.bytes)) else None
    except (OSError, ValueError, TypeError, LookupError):
        return None

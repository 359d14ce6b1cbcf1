"""Translated files that grow document by document, survive a crash, and appear under their names when complete.

Beside ``NAME.partial`` stands ``NAME.partial.json``: how many documents of the original are in it, how many bytes these
are, and a hash of the documents. So a translation goes on only with the text and the options that it was begun with.
"""

import hashlib
import json
import os
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Iterator, Mapping, Optional, Protocol

from docnmt_fairseq.corpus.files import atomic_write_bytes, partial_path
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import Document


@dataclass
class Journal:
    """What of a file is translated.

    Attributes:
        documents: their number.
        bytes: of their translations.
        source: hash of their lines.
        settings: that the translations depend on.
    """

    documents: int
    bytes: int
    source: str
    settings: Mapping[str, str]


class Output(Protocol):
    """Where the translated documents of one file go.

    Attributes:
        finished: whether the file is complete.
    """

    finished: bool

    def remaining(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Those that are not translated yet."""

    def add(self, document: Document, content: bytes) -> None:
        """Writes the next document."""

    def save(self) -> None:
        """Makes sure that what was added survives."""

    def finish(self) -> None:
        """Ends the file, which is complete."""

    def stop(self) -> None:
        """Ends the work; the file is not complete."""


class StandardOutput:
    """Standard output."""

    finished = False

    def remaining(self, documents: Iterator[Document]) -> Iterator[Document]:
        """See :class:`Output`."""
        return documents

    def add(self, document: Document, content: bytes) -> None:
        """See :class:`Output`.

        Raises:
            InputError: nobody reads it any more.
        """
        try:
            sys.stdout.buffer.write(content)
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
    """A file.

    Args:
        target: its name.
        settings: that the translations depend on.
        resume: go on with what was translated before.

    Raises:
        InputError: it was begun with other settings.
    """

    def __init__(self, target: Path, settings: Mapping[str, str], resume: bool):
        self.target, self.partial, self.journal_path = target, partial_path(target), journal_path(target)
        self.journal = Journal(0, 0, "", dict(settings))
        self._hash = hashlib.sha256()
        self._stream: Optional[BinaryIO] = None
        self.finished = False
        found = read_journal(target) if resume else None
        if found is not None:
            other = sorted(
                name for name in {*settings, *found.settings} if settings.get(name) != found.settings.get(name)
            )
            if other:
                raise InputError(
                    f"--resume: {self.partial} was begun with another --{other[0]} "
                    f"({found.settings.get(other[0], 'none')}); give the same, or begin anew with --force"
                )
            self.journal = found

    def remaining(self, documents: Iterator[Document]) -> Iterator[Document]:
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
                f"--resume: the text of {self.partial} was another one up to where it goes on; begin anew with --force"
            )
        return documents

    def add(self, document: Document, content: bytes) -> None:
        """See :class:`Output`.

        Raises:
            InputError: the file cannot be written.
        """
        with _said(self.partial):
            if self._stream is None:
                self._stream = self._opened()
            self._stream.write(content)
        self._hash.update(_bytes_of(document))
        self.journal.documents += 1
        self.journal.bytes += len(content)

    def save(self) -> None:
        """See :class:`Output`."""
        if self._stream is not None:
            with _said(self.partial):
                self._stream.flush()
                os.fsync(self._stream.fileno())
            self.journal.source = self._hash.hexdigest()
            atomic_write_bytes(self.journal_path, json.dumps(asdict(self.journal)).encode())

    def finish(self) -> None:
        """See :class:`Output`."""
        with _said(self.target):
            (self._stream or self._opened()).close()
            os.replace(self.partial, self.target)
            self.journal_path.unlink(missing_ok=True)
        self._stream, self.finished = None, True

    def stop(self) -> None:
        """See :class:`Output`."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            if not self.journal_path.exists():  # nothing in it can be gone on with
                self.partial.unlink(missing_ok=True)

    def _opened(self) -> BinaryIO:
        """The unfinished file, cut off behind the last document that is known to be whole."""
        self.partial.parent.mkdir(parents=True, exist_ok=True)
        if not self.journal.documents:
            self.journal_path.unlink(missing_ok=True)
        stream = open(self.partial, "r+b" if self.journal.documents else "wb")  # noqa: SIM115  (finish or stop closes it)
        stream.truncate(self.journal.bytes)
        stream.seek(self.journal.bytes)
        return stream


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Inside the block, what the system refuses is an :class:`InputError`."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def _bytes_of(document: Document) -> bytes:
    return "".join(f"{line}\n" for line in document.lines).encode("utf-8", "surrogatepass")


def journal_path(target: Path) -> Path:
    """Where it stands what of a file is translated."""
    partial = partial_path(target)
    return partial.with_name(f"{partial.name}.json")


def read_journal(target: Path) -> Optional[Journal]:
    """What of a file is translated; None: nothing that could be gone on with."""
    try:
        journal = Journal(**json.loads(journal_path(target).read_bytes()))
        return journal if partial_path(target).stat().st_size >= journal.bytes else None
    except (OSError, ValueError, TypeError):
        return None

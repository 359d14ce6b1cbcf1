"""Writers of translations: standard output, or files that grow by document and survive a crash.

An incomplete file is ``NAME.partial``; its journal ``NAME.partial.json`` states which documents it contains.
"""

import hashlib
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Iterator, List, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import partial_path, read_json, write_errors, write_json
from docnmt_fairseq.translate.formats import Document


@dataclass
class Journal:
    """Progress of an incomplete file."""

    documents: int  # number of documents written
    bytes: List[int]  # size of each file
    source: str  # hash of the source lines of these documents
    fingerprint: str  # of everything else that the translation depends on


class Writer:
    """Writer to standard output, and base class of :class:`FileWriter`."""

    def skip_written(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Returns the documents that are not written yet.

        Raises:
            InputError: the source of those written already has changed.
        """
        return documents

    def add(self, document: Document, *contents: bytes) -> None:
        """Writes the next document: its translation and, in files with scores, its rows of the table."""
        sys.stdout.buffer.write(contents[0])
        sys.stdout.buffer.flush()

    def save(self) -> None:
        """Makes what was added permanent."""

    def finish(self) -> None:
        """Completes the file."""

    def stop(self) -> None:
        """Closes the incomplete file."""


class FileWriter(Writer):
    """Writer of a file, and optionally of the table of its scores.

    Args:
        target: output file.
        fingerprint: of everything but the source that the translation depends on.
        resume: continues an interrupted file.
        scores: also writes the table of scores.

    Raises:
        InputError: the interrupted file has another fingerprint.
    """

    def __init__(self, target: Path, fingerprint: str, resume: bool, scores: bool = False):
        self.target = target
        self.targets = [target, scores_path(target)] if scores else [target]
        self._streams: List[BinaryIO] = []
        self._hash = hashlib.sha256()
        journal = read_journal(target) if resume else None
        if journal:
            check_unchanged(target, (journal.fingerprint, len(journal.bytes)), (fingerprint, len(self.targets)))
        self.journal = journal or Journal(0, [0 for _ in self.targets], "", fingerprint)

    def skip_written(self, documents: Iterator[Document]) -> Iterator[Document]:
        for document in islice(documents, self.journal.documents):
            self._hash.update(_source_bytes(document))
        if self.journal.documents:
            check_unchanged(self.target, self.journal.source, self._hash.hexdigest())
        return documents

    def add(self, document: Document, *contents: bytes) -> None:
        with write_errors(partial_path(self.target)):
            self._open()
            for stream, content in zip(self._streams, contents):
                stream.write(content)
        self._hash.update(_source_bytes(document))
        self.journal.documents += 1
        self.journal.bytes = [size + len(content) for size, content in zip(self.journal.bytes, contents)]

    def save(self) -> None:
        if self._streams:
            with write_errors(partial_path(self.target)):
                for stream in self._streams:
                    stream.flush()
                    os.fsync(stream.fileno())
            self.journal.source = self._hash.hexdigest()
            write_json(journal_path(self.target), asdict(self.journal))

    def finish(self) -> None:
        """Gives the files their final names; removes a table of scores that belongs to a replaced translation."""
        with write_errors(self.target):
            self._open()
            self._close()
            for target in reversed(self.targets):
                os.replace(partial_path(target), target)
            if len(self.targets) == 1:
                scores_path(self.target).unlink(missing_ok=True)
            journal_path(self.target).unlink(missing_ok=True)

    def stop(self) -> None:
        if self._streams:
            with suppress(OSError):  # a full disk; the journal does not cover what is lost
                self._close()
            if not journal_path(self.target).exists():  # cannot be resumed
                for target in self.targets:
                    partial_path(target).unlink(missing_ok=True)

    def _open(self) -> None:
        """Opens the incomplete files, truncated to what the journal covers."""
        if self._streams:
            return
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if not self.journal.documents:
            journal_path(self.target).unlink(missing_ok=True)
        for target, size in zip(self.targets, self.journal.bytes):
            stream = open(partial_path(target), "r+b" if self.journal.documents else "wb")  # noqa: SIM115
            self._streams.append(stream)
            stream.truncate(size)
            stream.seek(size)

    def _close(self) -> None:
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.close()


def check_unchanged(target: Path, before: object, now: object) -> None:
    """Compares what interrupted work depends on, so that parts of two different translations are not mixed.

    Raises:
        InputError: it has changed.
    """
    if before != now:
        message = "was started with other text, options, model, data or --workers; give the same, or --force restarts"
        raise InputError(f"--resume: {target} {message}")


def scores_path(target: Path) -> Path:
    """Table of the scores of a translation."""
    return target.with_name(f"{target.name}.scores.tsv")


def journal_path(target: Path) -> Path:
    """Journal of an incomplete file."""
    return partial_path(target).with_name(f"{partial_path(target).name}.json")


def read_journal(target: Path) -> Optional[Journal]:
    """Returns the journal of an incomplete file; None if there is nothing to resume."""
    try:
        journal = Journal(**read_json(journal_path(target)))
        sizes = [partial_path(file).stat().st_size for file in (target, scores_path(target))[: len(journal.bytes)]]
    except (TypeError, OSError):
        return None
    complete = bool(sizes) and all(size >= known for size, known in zip(sizes, journal.bytes))
    return journal if complete and journal.documents else None


def _source_bytes(document: Document) -> bytes:
    return "".join(f"{line}\n" for line in document.lines).encode("utf-8", "surrogatepass")

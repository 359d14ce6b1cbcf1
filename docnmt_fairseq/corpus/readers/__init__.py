"""Readers of native corpus formats, one class per file."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import READERS, Reader, ReaderOptions, Reading, all_options
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import import_folder

__all__ = ["READERS", "Reader", "ReaderOptions", "Reading", "all_options", "make_reader", "read", "resolve"]

import_folder(__name__, __path__)


def make_reader(name: str, reading: Reading) -> Reader:
    """Returns the reader of a format; raises :class:`InputError` for unknown formats and bad option values."""
    return READERS[name](reading)


def resolve(name: str, arguments: Sequence[str], reading: Reading) -> List[Path]:
    """Returns the existing files of one ``--train``, ``--valid`` or ``--test``."""
    reader = make_reader(name, reading)
    paths = reader.resolve(arguments)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file (format {name} takes {reader.files})")
    return paths


def read(name: str, paths: Sequence[Path], reading: Reading) -> Iterator[Document]:
    """Yields the documents of native files."""
    return make_reader(name, reading).read(paths)

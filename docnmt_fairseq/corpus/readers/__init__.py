"""Readers of native corpus formats, one class per file."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import READERS, Reader, ReaderOptions, Reading, all_options
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import import_folder

__all__ = ["READERS", "Reader", "ReaderOptions", "Reading", "all_options", "read", "resolve"]

import_folder(__name__, __path__)


def resolve(name: str, arguments: Sequence[str], reading: Reading) -> List[Path]:
    """Returns the existing files of one ``--train``, ``--valid`` or ``--test``."""
    reader = READERS[name](reading)
    paths = reader.resolve(arguments)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file (format {name} takes {reader.files})")
    return paths


def read(name: str, paths: Sequence[Path], reading: Reading) -> Iterator[Document]:
    """Yields the documents of native files."""
    return READERS[name](reading).read(paths)

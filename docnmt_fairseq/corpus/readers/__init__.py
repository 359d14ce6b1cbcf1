"""Readers of native formats by name, a class each in a file of its own."""

from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Tuple, Type

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import READERS, Reader, ReaderOptions, Reading, all_options
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import import_folder

__all__ = [
    "READERS",
    "Reader",
    "ReaderOptions",
    "Reading",
    "all_options",
    "make_reader",
    "options_of_format",
    "read",
    "resolve",
]

import_folder(__name__, __path__)


def options_of_format(name: str) -> Tuple[Field[Any], ...]:
    """The options that the reader of a format has.

    Raises:
        InputError: there is no such format.
    """
    return fields(_reader_class(name).Options)


def make_reader(name: str, reading: Reading) -> Reader:
    """The reader of a format.

    Raises:
        InputError: there is no such format, or one of its options has a value that is not allowed.
    """
    return _reader_class(name)(reading)


def _reader_class(name: str) -> Type[Reader]:
    if name not in READERS:
        raise InputError(f"--format {name}: no such format; choose from {', '.join(READERS.names())}")
    return READERS[name]


def resolve(name: str, arguments: Sequence[str], reading: Reading) -> List[Path]:
    """The files that one ``--train``, ``--valid`` or ``--test`` stands for.

    Raises:
        InputError: the wrong number of files for the format, or a file that does not exist.
    """
    reader = make_reader(name, reading)
    paths = reader.resolve(arguments)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file (format {name} takes {reader.files})")
    return paths


def read(name: str, paths: Sequence[Path], reading: Reading) -> Iterator[Document]:
    """Yields the documents of native files."""
    return make_reader(name, reading).read(paths)

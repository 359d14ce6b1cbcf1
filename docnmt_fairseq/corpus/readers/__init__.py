"""Readers of native formats: every other file of this folder is one format, and its file name is the format's name.

A format is a module with ``HELP`` (one line), ``FILES`` (what ``--train``, ``--valid`` and ``--test`` take),
``resolve(arguments, options)`` that returns the paths, and ``read(paths, options)`` that yields
:class:`~docnmt_fairseq.corpus.document.Document`. Bad input is an ``InputError`` that names the file and the place.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may need to know beside the files.

    Attributes:
        source_lang: language of the first side, as the file suffix or the format's language attribute writes it.
        target_lang: language of the second side; None to read the source only.
        reference: which of several references, by translator name or index from 0; None for the first.
        one_document_a_line: for text without marks: every line is a document.
        empty_sides: pairs with an empty side are passed on (to be dropped and counted) instead of refused.
        columns: of tables: source, target and, if there is one, the document's name; numbers from 1, or names.
        header: the first row of tables holds the columns' names.
    """

    source_lang: str
    target_lang: Optional[str] = None
    reference: Optional[str] = None
    one_document_a_line: bool = False
    empty_sides: bool = False
    columns: Tuple[str, ...] = ("1", "2")
    header: bool = False

    @property
    def sides(self) -> int:
        """Number of sides of the documents to be read."""
        return 1 if self.target_lang is None else 2


def formats() -> List[str]:
    """Returns the names of all formats."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def reader(name: str) -> ModuleType:
    """Returns the reader of a format.

    Raises:
        InputError: there is no such format.
    """
    if name not in formats():
        raise InputError(f"--format {name}: no such format; choose from {', '.join(formats())}")
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")


def resolve(name: str, arguments: Sequence[str], options: ReadOptions) -> List[Path]:
    """Returns the files that one ``--train``, ``--valid`` or ``--test`` stands for.

    Raises:
        InputError: the wrong number of files for the format, or a file that does not exist.
    """
    paths = reader(name).resolve(arguments, options)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file (format {name} takes {reader(name).FILES})")
    return paths


def read(name: str, paths: Sequence[Path], options: ReadOptions) -> Iterator[Document]:
    """Yields the documents of native files."""
    return reader(name).read(paths, options)


def one_file_a_side(name: str, arguments: Sequence[str], options: ReadOptions) -> List[Path]:
    """Returns the arguments as paths, for formats that take one file a side.

    Raises:
        InputError: there are more or fewer files than sides.
    """
    if len(arguments) != options.sides:
        raise InputError(f"format {name} takes one file a side: expected {options.sides}, got {' '.join(arguments)}")
    return [Path(argument) for argument in arguments]


def one_file(name: str, arguments: Sequence[str]) -> List[Path]:
    """Returns the argument as path, for formats that are one file.

    Raises:
        InputError: there are several.
    """
    if len(arguments) != 1:
        raise InputError(f"format {name} takes {reader(name).FILES}, got {' '.join(arguments)}")
    return [Path(arguments[0])]


def prefix_or_files(name: str, arguments: Sequence[str], options: ReadOptions) -> List[Path]:
    """Returns the files PREFIX.SOURCE and PREFIX.TARGET of a prefix, or the files themselves.

    Raises:
        InputError: there are more or fewer files than sides.
    """
    if len(arguments) == 1 and not (options.sides == 1 and Path(arguments[0]).is_file()):
        languages = [options.source_lang, options.target_lang][: options.sides]
        return [Path(f"{arguments[0]}.{language}") for language in languages]
    return one_file_a_side(name, arguments, options)

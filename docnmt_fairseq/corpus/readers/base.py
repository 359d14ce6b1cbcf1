"""Contract and registry of readers of native corpus formats.

A reader is one class in one file of this folder, registered under the name of its format; importing the folder imports
them all. Its options are fields of its ``Options``: flags of ``docnmt prepare`` and keys of recipes' ``prepare``.

    @register("columns")
    class ColumnsReader(Reader):
        @dataclass(frozen=True)
        class Options(ReaderOptions):
            separator: str = option("|", "between source and target", metavar="SIGN")

        help = "a sentence pair per line"
        files = "one file"

        def resolve(self, arguments):
            return self.exactly(1, arguments)

        def read(self, paths): ...
"""

import logging
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Type

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.files import existing_file
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import CheckedOptions
from docnmt_fairseq.registry import Registry

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReaderOptions(CheckedOptions):
    """Options of one format, made by :func:`docnmt_fairseq.options.option`; formats may share an option."""


@dataclass(frozen=True)
class Reading:
    """Settings of readers.

    Attributes:
        source_lang: language of the first side, as in file suffixes or language attributes of the format.
        target_lang: language of the second side; None to read the source only.
        drop_incomplete: leave out what lacks a side or cannot be matched, instead of refusing it; pairs with an empty
            side are passed on, to be dropped and counted.
        options: options of formats by name.
    """

    source_lang: str
    target_lang: Optional[str] = None
    drop_incomplete: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def languages(self) -> List[str]:
        """Languages of the sides that are read."""
        return [self.source_lang] if self.target_lang is None else [self.source_lang, self.target_lang]


class Omitted:
    """Parts of a file that a reader leaves out with ``--on-empty drop``, reported together.

    Args:
        path: file.
        what: parts, for messages.
        drop: leave out parts with errors; otherwise the errors are raised.
    """

    def __init__(self, path: Path, what: str, drop: bool):
        self.path, self.what, self.drop = path, what, drop
        self.errors = 0
        self.first: Optional[InputError] = None

    @contextmanager
    def catch(self) -> Iterator[None]:
        """Context in which an :class:`InputError` concerns one part only."""
        try:
            yield
        except InputError as error:
            if not self.drop:
                raise InputError(f"{error}; --on-empty drop leaves out such {self.what}") from error
            self.errors += 1
            self.first = self.first or error

    def report(self) -> None:
        """Warns of the parts that were left out."""
        if self.errors:
            logger.warning(f"{self.path}: {self.errors:,} {self.what} left out; the first: {self.first}")


class Reader(ABC):
    """Reader of one native format: ``cls(reading)``; holds few documents in memory.

    Bad input raises :class:`InputError` with file and line.

    Class attributes:
        name: name of the format.
        help: description in one line.
        files: files that ``--train``, ``--valid`` and ``--test`` take.
        Options: dataclass of options.
        line_aligned: True if the sides are files of lines, so that extra sides are possible (``--extra``).
    """

    name: ClassVar[str]
    help: ClassVar[str]
    files: ClassVar[str]
    Options: ClassVar[Type[ReaderOptions]] = ReaderOptions
    line_aligned: ClassVar[bool] = False

    options: Any

    def __init__(self, reading: Reading):
        self.reading = reading
        names = {known.name for known in fields(self.Options)}
        self.options = self.Options(**{name: value for name, value in reading.options.items() if name in names})

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the files of one ``--train``, ``--valid`` or ``--test``, any number of them; they may not exist.

        Raises:
            InputError: the wrong number of files for the format.
        """
        return list(map(Path, arguments))

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents of the files."""

    @property
    def sides(self) -> int:
        """Number of sides of the documents."""
        return len(self.reading.languages)

    def one_file(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the only argument as a path; ``resolve`` of formats with one file."""
        return self.exactly(1, arguments)

    def one_per_side(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the file of each side; ``resolve`` of formats with one file per side."""
        return self.exactly(self.sides, arguments)

    def exactly(self, number: int, arguments: Sequence[str]) -> List[Path]:
        """Returns the arguments as paths; raises :class:`InputError` if their number is wrong."""
        if len(arguments) != number:
            raise InputError(f"format {self.name} takes {self.files}, got {' '.join(arguments)}")
        return list(map(Path, arguments))

    def prefix_or_files(self, arguments: Sequence[str], suffixes: Optional[Sequence[str]] = None) -> List[Path]:
        """Returns the files PREFIX.SUFFIX of a prefix, packed or not, or the files themselves.

        Args:
            arguments: prefix, or one file per side.
            suffixes: suffixes of the sides; None: the languages.
        """
        if len(arguments) == 1 and not (self.sides == 1 and Path(arguments[0]).is_file()):
            names = (suffixes or self.reading.languages)[: self.sides]
            return [existing_file(f"{arguments[0]}.{suffix}") for suffix in names]
        return self.exactly(self.sides, arguments)


READERS: Registry[Reader] = Registry("format")


def register(name: str) -> Callable[[Type[Reader]], Type[Reader]]:
    """Class decorator that registers a reader under the name of its format."""

    def decorate(cls: Type[Reader]) -> Type[Reader]:
        cls.name = name
        return READERS.register(name)(cls)

    return decorate


def all_options() -> Dict[str, Field[Any]]:
    """Returns the option fields of all readers by name."""
    return {known.name: known for name in READERS.names() for known in fields(READERS[name].Options)}

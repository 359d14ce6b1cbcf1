"""The contract of readers of native formats, and the registry that ``docnmt prepare`` and recipes ask for them.

A reader is one class in one file of this folder, registered under its format's name; importing the folder imports them
all. What it can be told beside the files are fields of its ``Options``, each a flag of ``docnmt prepare`` and a key of
recipes' ``prepare``.

    @register("columns")
    class ColumnsReader(Reader):
        @dataclass(frozen=True)
        class Options(ReaderOptions):
            separator: str = option("|", "between source and target", metavar="SIGN")

        help = "a sentence pair a line"
        files = "one file"

        def resolve(self, arguments):
            return self.one_file(arguments)

        def read(self, paths): ...

is all there is to it.
"""

from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Type

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import CheckedOptions, flag_of, same_declaration
from docnmt_fairseq.registry import Registry


@dataclass(frozen=True)
class ReaderOptions(CheckedOptions):
    """The options of one format: fields made by :func:`docnmt_fairseq.options.option`; here none.

    Formats may share an option: that of one name means the same to all.

    Raises:
        InputError: a value that is not allowed.
    """


@dataclass(frozen=True)
class Reading:
    """What readers are told beside the files.

    Attributes:
        source_lang: language of the first side, as the file suffix or the format's language attribute writes it.
        target_lang: language of the second side; None to read the source only.
        empty_sides: pairs with an empty side are passed on (to be dropped and counted) instead of refused.
        options: of formats, by name; a reader takes those that it has.
    """

    source_lang: str
    target_lang: Optional[str] = None
    empty_sides: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def languages(self) -> List[str]:
        """The languages of the sides to be read."""
        return [self.source_lang] if self.target_lang is None else [self.source_lang, self.target_lang]


class Reader(ABC):
    """Contract: ``cls(reading)``; reads the documents of one native format, never more than a few at a time.

    Bad input is an ``InputError`` that names the file and the place.

    Class attributes:
        name: of the format.
        help: in one line, what it is.
        files: what ``--train``, ``--valid`` and ``--test`` take.
        Options: what it can be told.
        line_aligned: whether sides are files of lines, so that there can be more of them than two (``--extra``).

    Args:
        reading: languages and options.

    Raises:
        InputError: an option with a value that is not allowed.
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

    @abstractmethod
    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """The files that one ``--train``, ``--valid`` or ``--test`` stands for; they may not exist.

        Raises:
            InputError: too many or too few for the format.
        """

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents of the files."""

    def told_by_names(self, paths: Sequence[Path]) -> Any:
        """What the names of the files say about their content, as a JSON value; None: nothing, as in most formats."""
        return None

    @property
    def sides(self) -> int:
        """Number of sides of the documents to be read."""
        return len(self.reading.languages)

    def one_file(self, arguments: Sequence[str]) -> List[Path]:
        """The argument as a path, for formats that are one file.

        Raises:
            InputError: there are several.
        """
        if len(arguments) != 1:
            raise InputError(f"format {self.name} takes {self.files}, got {' '.join(arguments)}")
        return [Path(arguments[0])]

    def one_file_a_side(self, arguments: Sequence[str]) -> List[Path]:
        """The arguments as paths, for formats that take one file a side.

        Raises:
            InputError: there are more or fewer files than sides.
        """
        if len(arguments) != self.sides:
            raise InputError(
                f"format {self.name} takes one file a side: expected {self.sides}, got {' '.join(arguments)}"
            )
        return [Path(argument) for argument in arguments]

    def prefix_or_files(self, arguments: Sequence[str], suffixes: Optional[Sequence[str]] = None) -> List[Path]:
        """The files PREFIX.SUFFIX of a prefix, or the files themselves.

        Args:
            arguments: the prefix, or a file a side.
            suffixes: of the sides; None: the languages.

        Raises:
            InputError: there are more or fewer files than sides.
        """
        if len(arguments) == 1 and not (self.sides == 1 and Path(arguments[0]).is_file()):
            return [Path(f"{arguments[0]}.{suffix}") for suffix in (suffixes or self.reading.languages)[: self.sides]]
        return self.one_file_a_side(arguments)


READERS: Registry[Reader] = Registry("format")


def register(name: str) -> Callable[[Type[Reader]], Type[Reader]]:
    """A class decorator that registers a reader under its format's name.

    Raises:
        ValueError: the name is registered already, or another reader means something else by one of its options.
    """

    def decorate(cls: Type[Reader]) -> Type[Reader]:
        cls.name = name
        known = all_options()
        for own in fields(cls.Options):
            first = known.get(own.name, own)
            if not same_declaration(first, own):
                raise ValueError(f"format {name} declares {flag_of(own.name)}, which other formats have otherwise")
        return READERS.register(name)(cls)

    return decorate


def all_options() -> Dict[str, Field[Any]]:
    """The fields of the options of all readers, by name."""
    return {known.name: known for name in READERS.names() for known in fields(READERS[name].Options)}

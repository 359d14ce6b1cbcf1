"""The contract of formats of files to translate, and the registry that ``docnmt translate`` asks for them.

A format is one class in one file of this folder, registered under its name; importing the folder imports them all. It
turns a file into documents, and each document's translations into bytes; the bytes of all documents, one after the
other, are the translated file. Most formats hold one document a file, and say of it no more than where its text is:

    @register("shouting")
    class Shouting(WholeFile):
        help = "text between exclamation marks"
        endings = (".shout",)

        def parse(self, content, name):
            parts = decode(content, name).split("!")
            return Parsed([Unit([part]) for part in parts], lambda pieces: "!".join(...).encode())

is all there is to it.
"""

import re
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import BinaryIO, Callable, ClassVar, Iterator, List, Optional, Sequence, Tuple, Type

from docnmt_fairseq.corpus.files import DAMAGED
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.registry import Registry
from docnmt_fairseq.translate.formats.limits import Limits
from docnmt_fairseq.translate.formats.sentences import Division, Split
from docnmt_fairseq.translate.formats.units import Unit

SPLITS = ("lines", "paragraphs")  # what running text is read by
LARGEST = 64 * 2**20  # bytes of a file that is held in memory


@dataclass(frozen=True)
class Reading:
    """What formats are told beside the file.

    Attributes:
        languages: gives those of source and target; it is called only where one is needed.
        empty_lines: what they end in text of a sentence a line: "document" or "paragraph".
        running: files of no other format are running text, not a sentence a line.
        split: of running text: each of its "lines" is a paragraph, or "paragraphs" end at empty lines.
        alone: tells whether sentences are translated each by itself, so that a long document may be cut anywhere; it is
            called only where one is long.
        limits: of what a file may hold.
    """

    languages: Callable[[], Tuple[str, str]] = lambda: ("en", "en")
    empty_lines: str = "document"
    running: bool = False
    split: str = SPLITS[1]
    alone: Callable[[], bool] = lambda: False
    limits: Limits = Limits()


@dataclass(frozen=True)
class Document:
    """One document of a file.

    Attributes:
        lines: a sentence a line, and marks.
        finish: gives the bytes of the translated document, from the translations, a line for each line.
        first_line: line number of the first of ``lines`` in the file; None where they are not lines of the file.
        offset: number of lines of the documents before it in the file.
    """

    lines: List[str]
    finish: Callable[[Sequence[str]], bytes]
    first_line: Optional[int] = None
    offset: int = 0

    @property
    def sentences(self) -> int:
        """Their number."""
        return sum(not is_mark(line) for line in self.lines)


class Format(ABC):
    """Contract: ``cls(reading)``; yields the documents of one file, bit by bit where the format allows.

    Bad input is an ``InputError`` that names the file and the place.

    Class attributes:
        name: of the format.
        help: in one line, what it is.
        endings: of the files that are taken for it.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    endings: ClassVar[Tuple[str, ...]] = ()

    def __init__(self, reading: Reading):
        self.reading = reading

    @abstractmethod
    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yields the documents of a file; ``name`` is what errors call it.

        Raises:
            InputError: it is not of this format.
        """


@dataclass(frozen=True)
class Parsed:
    """A file of which one document is made.

    Attributes:
        units: its texts, in reading order.
        render: gives the file from the new pieces of each unit; None stands for a unit that stays as it was.
    """

    units: Sequence[Unit]
    render: Callable[[List[Optional[List[str]]]], bytes]


class WholeFile(Format):
    """A format whose files are one document each, divided into sentences here."""

    @abstractmethod
    def parse(self, content: bytes, name: str) -> Parsed:
        """Finds the texts of a file.

        Args:
            content: of the file, a byte order mark of UTF-8 aside.
            name: what errors call it.

        Raises:
            InputError: it is not of this format.
        """

    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """See :class:`Format`."""
        content = read_all(stream, name)
        mark = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
        parsed = self.parse(content[len(mark) :], name)
        check = partial(self.reading.limits.check, what="sentences", name=name)
        division = Division(parsed.units, self.splitter(), check)
        yield Document(division.lines, lambda translations: mark + parsed.render(division.restore(translations)))

    def splitter(self) -> Split:
        """What divides text into sentences, by the source language.

        Raises:
            InputError: its library is not installed.
        """
        library = self.needs("sentencex")
        language = re.split("[-_]", self.reading.languages()[0])[0].lower()  # it knows no regions
        return lambda text: library.segment(language, text)

    def needs(self, library: str) -> ModuleType:
        """A library of the extra ``documents``.

        Raises:
            InputError: it is not installed.
        """
        try:
            return import_module(library)
        except ImportError as error:
            raise InputError(
                f"format {self.name}: needs {library.partition('.')[0]}: pip install 'docnmt_fairseq[documents]'"
            ) from error


def read_all(stream: BinaryIO, name: str) -> bytes:
    """The content of a file of reasonable size.

    Raises:
        InputError: it is damaged, or larger than 64 MiB.
    """
    try:
        content = stream.read(LARGEST + 1)
    except DAMAGED as error:
        raise InputError(f"{name}: damaged: {error}") from error
    if len(content) > LARGEST:
        raise InputError(f"{name}: larger than {LARGEST >> 20} MiB; divide it")
    return content


def decode(content: bytes, name: str, charset: str = "UTF-8") -> str:
    """The text of a file, line ends as they are.

    Raises:
        InputError: the character set is not known, or not that of the file.
    """
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError.at(name, line, f"not {charset}; convert the file to UTF-8") from error
    except (LookupError, UnicodeError) as error:
        raise InputError(f"{name}: character set {charset}, which is not known; convert the file to UTF-8") from error


FORMATS: Registry[Format] = Registry("format")


def register(name: str) -> Callable[[Type[Format]], Type[Format]]:
    """A class decorator that registers a format under its name.

    Raises:
        ValueError: the name, or an ending, is registered already.
    """

    def decorate(cls: Type[Format]) -> Type[Format]:
        cls.name = name
        taken = {ending for other in FORMATS.names() for ending in FORMATS[other].endings}
        if taken & set(cls.endings):
            raise ValueError(f"format {name!r}: another one has {', '.join(sorted(taken & set(cls.endings)))}")
        return FORMATS.register(name)(cls)

    return decorate

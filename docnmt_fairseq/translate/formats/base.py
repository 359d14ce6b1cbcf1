"""Contract of file formats, and their registry.

A format is one class in one file of this folder, registered under its name; importing the folder imports all of them.
It converts a file to documents, and the translations of each document to bytes; the concatenated bytes of all documents
are the translated file. Most formats have one document per file and only say where its text is:

    @register("shouting")
    class Shouting(WholeFile):
        help = "text between exclamation marks"
        endings = (".shout",)

        def parse(self, content, name):
            parts = decode(content, name).split("!")
            return Parsed([Segment([part]) for part in parts], lambda pieces: "!".join(...).encode())
"""

import logging
import re
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from textwrap import shorten
from types import ModuleType
from typing import BinaryIO, Callable, ClassVar, Iterator, List, Optional, Sequence, Tuple, Type

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.errors import InputError, first_line, needs_extra
from docnmt_fairseq.registry import Registry
from docnmt_fairseq.translate.formats.segments import Segment, Segmentation, Split

SPLITS = ("lines", "paragraphs")  # values of --split
LINE = re.compile(r"[^\n]*\n|[^\n]+")  # with its end
ANY_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # with its end of any kind
MAX_BYTES = 64 * 2**20  # of a file that is read as a whole

logger = logging.getLogger(__name__)


class TooLarge(InputError):
    """File that exceeds a limit."""


@dataclass(frozen=True)
class FormatLimits:
    """Limits on a file: small files can unpack to large ones, and markup costs time."""

    unpacked: int = 256 * 2**20  # total bytes of the members of an archive
    sentences: Optional[int] = None  # sentences to translate, which also limits lines and tags; None: unlimited

    def check(self, count: int, what: str, name: str, per_sentence: int = 1) -> None:
        """Checks a number of items before time is spent on them.

        Args:
            count: number of items.
            what: plural noun of the items.
            name: file name in messages.
            per_sentence: allowed items per sentence; 5,000 sentences should be read in some seconds.

        Raises:
            TooLarge: there are more.
        """
        if self.sentences is not None:
            check_size(count, per_sentence * self.sentences, what, name)


def check_size(size: int, most: int, what: str, name: str) -> None:
    """Raises :class:`TooLarge` if a file has more of something than a limit."""
    if size > most:
        raise TooLarge(f"{name}: more than {most:,} {what}; divide it")


@dataclass(frozen=True)
class Reading:
    """Settings of formats."""

    languages: Callable[[], Tuple[str, str]] = lambda: ("en", "en")  # source and target; called only if needed
    empty_lines: str = "document"  # what an empty line ends in text with a sentence per line: or "paragraph"
    running: bool = False  # files without another format are running text
    split: str = SPLITS[1]  # in running text, each of the "lines" is a paragraph, or "paragraphs" end at empty lines
    # Sentences are translated without context, so that long documents may be divided; called only for long ones.
    alone: Callable[[], bool] = lambda: False
    limits: FormatLimits = FormatLimits()


@dataclass(frozen=True)
class Document:
    """Document of a file."""

    lines: List[str]  # a sentence per line, and boundaries
    finish: Callable[[Sequence[str]], bytes]  # returns the translated document, from a translation of each line
    first_line: Optional[int] = None  # number of the first line in the file; None if they are not lines of the file
    offset: int = 0  # number of lines in the preceding documents of the file

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return sum(not is_boundary(line) for line in self.lines)


class Format(ABC):
    """Contract: ``cls(reading)``; yields the documents of a file, streaming if the format allows it."""

    name: ClassVar[str]
    help: ClassVar[str]  # description in one line
    endings: ClassVar[Tuple[str, ...]] = ()  # of file names

    def __init__(self, reading: Reading):
        self.reading = reading

    @abstractmethod
    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yields the documents of a file; ``name`` is its name in messages.

        Raises:
            InputError: it is not of this format.
        """


Pieces = Optional[List[str]]  # new pieces of a segment; None: unchanged


@dataclass(frozen=True)
class Parsed:
    """Parsed file with a single document."""

    segments: Sequence[Segment]  # its texts, in reading order
    render: Callable[[List[Pieces]], bytes]  # returns the file with new pieces of each segment


class WholeFile(Format):
    """Format with one document per file, which is split into sentences here."""

    @abstractmethod
    def parse(self, content: bytes, name: str) -> Parsed:
        """Parses a file.

        Args:
            content: content without a byte order mark of UTF-8.
            name: name in messages.

        Raises:
            InputError: it is not of this format.
        """

    def documents(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yields the document.

        Raises:
            InputError: it is damaged, not of this format, or larger than 64 MiB.
        """
        try:
            content = stream.read(MAX_BYTES + 1)
            check_size(len(content), MAX_BYTES, "bytes", name)
            mark = BOM_UTF8 if content.startswith(BOM_UTF8) else b""
            parsed = self.parse(content[len(mark) :], name)
        except InputError:
            raise
        except Exception as error:  # decompression and parsers raise anything on damaged files
            raise InputError(f"{name}: damaged, or not {self.name}: {shorten(first_line(error), 200)}") from error
        if content.strip() and not parsed.segments:
            logger.warning(f"{name}: contains no text of the format {self.name}, stays as it is")
        check = partial(self.reading.limits.check, what="sentences", name=name)
        found = Segmentation(parsed.segments, self.splitter(), check)
        yield Document(found.lines, lambda translations: mark + parsed.render(found.restore(translations)))

    def splitter(self) -> Split:
        """Returns the sentence splitter for the source language."""
        library = self.needs("sentencex")
        language = re.split("[-_]", self.reading.languages()[0])[0].lower()  # it knows no regions
        return lambda text: library.segment(language, text)

    def needs(self, library: str) -> ModuleType:
        """Imports a library of the extra ``documents``.

        Raises:
            InputError: it is not installed.
        """
        with needs_extra("documents", f"format {self.name}"):
            return import_module(library)


def decode(content: bytes, name: str, charset: str = "UTF-8") -> str:
    """Returns the text of a file with its line ends.

    Raises:
        InputError: the file has another character set.
        LookupError: the character set is unknown.
    """
    try:
        return content.decode(charset)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError.at(name, line, f"not {charset}; convert the file to UTF-8") from error


FORMATS: Registry[Format] = Registry("format")


def register(name: str) -> Callable[[Type[Format]], Type[Format]]:
    """Returns a class decorator that registers a format under its name."""

    def decorate(cls: Type[Format]) -> Type[Format]:
        cls.name = name
        return FORMATS.register(name)(cls)

    return decorate

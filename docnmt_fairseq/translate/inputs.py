"""Input files of a translation: their documents, and what remains to be translated."""

import logging
import sys
from array import array
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from docnmt_fairseq.corpus.files import open_binary
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import Document, Format, format_of
from docnmt_fairseq.translate.request import STANDARD, Request, read_once
from docnmt_fairseq.translate.writers import read_journal

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputFile:
    """Input file, or some of its documents.

    Attributes:
        source: input file.
        target: output file; None: standard output.
        format: format of both.
        sizes: number of sentences of each document; None: unknown before the file is read.
        first, end: range of documents to translate.
        done: number of these that are translated already.
        key: identifies the file within the request, independently of the folder that it is in.
    """

    source: Path
    target: Optional[Path]
    format: Format
    sizes: Optional[Sequence[int]] = None
    first: int = 0
    end: Optional[int] = None
    done: int = 0
    key: str = ""

    @property
    def name(self) -> str:
        """Name of the source in messages."""
        return "standard input" if self.source == STANDARD else str(self.source)

    @property
    def sentences(self) -> int:
        """Number of sentences to translate; 0 if unknown."""
        return sum(self.sizes[self.first + self.done : self.end]) if self.sizes is not None else 0

    def documents(self) -> Iterator[Document]:
        """Yields the documents of the range with their offsets, including those translated already."""
        with nullcontext(sys.stdin.buffer) if self.source == STANDARD else open_binary(self.source) as stream:
            offset = 0
            for document in islice(self.format.documents(stream, self.name), self.end):
                yield replace(document, offset=offset)
                offset += len(document.lines)

    def remaining(self) -> Iterator[Document]:
        """Yields the documents of the range."""
        return islice(self.documents(), self.first, None)


def input_files(request: Request) -> List[InputFile]:
    """Returns the files to translate; reads them once, so that bad input is reported before any translation.

    Raises:
        InputError: there is nothing to translate; a file cannot be read; a translation exists already.
    """
    if request.output is None:
        if request.is_folder:
            raise InputError("--output: give a folder for the translations of several inputs")
        request.check_split(request.inputs)
        return [_input_file(request.inputs[0], None, request)]
    pairs = request.pairs()
    shard = request.shard
    if shard.of > 1 and request.is_folder:
        own = shard.of_items([source.stat().st_size for source, _ in pairs])
        pairs = [pairs[number] for number in own]
    elif shard.of > 1:
        pairs = [(source, shard.output(target)) for source, target in pairs]
    check_existing([target for _, target in pairs if target.exists()], request)
    todo = [(source, target) for source, target in pairs if request.force or not target.exists()]
    files = [_input_file(source, target, request) for source, target in todo]
    if request.parts:
        files = [_part(file, request) for file in files]
    return [_resumed(file, request) for file in files]


def check_existing(existing: Sequence[Path], request: Request) -> None:
    """Checks that the request says what to do about existing translations.

    Raises:
        InputError: it does not.
    """
    if existing and not (request.force or request.resume):
        more = f" (and {len(existing) - 1:,} more)" if len(existing) > 1 else ""
        raise InputError(f"--output {existing[0]}: exists already{more}; --force replaces, --resume keeps it")
    if existing and request.resume:
        logger.info(f"{len(existing):,} files are translated already")


def _input_file(source: Path, target: Optional[Path], request: Request) -> InputFile:
    folder = next((path for path in request.inputs if source.is_relative_to(path) and source != path), source.parent)
    key = source.relative_to(folder).as_posix()
    file = InputFile(source, target, format_of(source.name, request.format, request.reading), key=key)
    if read_once(source):
        return file
    return replace(file, sizes=array("q", (document.sentences for document in file.documents())))


def _part(file: InputFile, request: Request) -> InputFile:
    own = request.shard.of_items(file.sizes or ())
    return replace(file, first=own.start, end=own.stop)


def _resumed(file: InputFile, request: Request) -> InputFile:
    """Returns the file with the progress of an interrupted translation.

    Raises:
        InputError: there is one, but neither ``resume`` nor ``force`` was given.
    """
    journal = None if file.target is None else read_journal(file.target)
    if journal is None or request.force:
        return file
    if not request.resume:
        raise InputError(f"--output {file.target}: was interrupted; --resume continues, --force restarts")
    logger.info(f"{file.name}: resumes after {journal.documents:,} documents")
    return replace(file, done=journal.documents)

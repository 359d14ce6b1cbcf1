"""Input files of a translation: their documents, what remains to be translated, and files of target lines."""

import logging
import sys
from array import array
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import open_binary, read_lines, refuse_streams
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import PLAIN, Document, Format, format_of
from docnmt_fairseq.translate.request import STANDARD, Request, read_once
from docnmt_fairseq.translate.writers import read_journal

# Options with a file of target lines, one per input line; also arguments of DocumentTranslator.translate_lines.
LINE_INPUTS = ("target_prefix", "target_context")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputFile:
    """Input file, or some of its documents."""

    source: Path
    target: Optional[Path]  # output file; None: standard output
    format: Format
    key: str = ""  # identifies the file within the request, independently of the folder that it is in
    sizes: Optional[Sequence[int]] = None  # number of sentences of each document; None: unknown before the file is read
    first: int = 0  # first document to translate
    end: Optional[int] = None  # after the last one
    done: int = 0  # number of these that are translated already

    @property
    def name(self) -> str:
        """Name of the source in messages."""
        return "standard input" if self.source == STANDARD else str(self.source)

    @property
    def sentences(self) -> int:
        """Number of sentences to translate; 0 if unknown."""
        return sum(self.sizes[self.first + self.done : self.end]) if self.sizes is not None else 0

    def documents(self) -> Iterator[Document]:
        """Yields the documents up to the end of the range, with their offsets."""
        with nullcontext(sys.stdin.buffer) if self.source == STANDARD else open_binary(self.source) as stream:
            offset = 0
            for document in islice(self.format.documents(stream, self.name), self.end):
                yield replace(document, offset=offset)
                offset += len(document.lines)

    def remaining(self) -> Iterator[Document]:
        """Yields the documents of the range, including those translated already."""
        return islice(self.documents(), self.first, None)


def input_files(request: Request) -> List[InputFile]:
    """Returns the files to translate; reads them once, so that bad input is reported before any translation.

    Raises:
        InputError: there is nothing to translate; a file cannot be read; a translation exists already, or was
            interrupted, without ``resume`` or ``force``.
    """
    if request.output is None:
        if request.is_folder:
            raise InputError("--output: give a folder for the translations of several inputs")
        request.check_split(request.inputs)
        return [_input_file(request.inputs[0], None, request)]
    pairs, shard = request.pairs(), request.shard
    if request.is_folder:
        pairs = [pairs[number] for number in shard.of_items([source.stat().st_size for source, _ in pairs])]
    elif shard.of > 1:
        pairs = [(source, shard.output(target)) for source, target in pairs]
    check_existing([target for _, target in pairs if target.exists()], request)
    return [_input_file(*pair, request) for pair in pairs if request.force or not pair[1].exists()]


def check_existing(existing: Sequence[Path], request: Request) -> None:
    """Raises :class:`InputError` for existing translations, unless the request replaces or keeps them."""
    if existing and not (request.force or request.resume):
        more = f" (and {len(existing) - 1:,} more)" if len(existing) > 1 else ""
        raise InputError(f"--output {existing[0]}: exists already{more}; --force replaces, --resume keeps it")
    if existing and request.resume:
        logger.info(f"{len(existing):,} files are translated already")


def _input_file(source: Path, target: Optional[Path], request: Request) -> InputFile:
    folder = next((path for path in request.inputs if source.is_relative_to(path) and source != path), source.parent)
    key = source.relative_to(folder).as_posix()
    file = InputFile(source, target, format_of(source.name, request.format, request.reading), key)
    if not read_once(source):
        file = replace(file, sizes=array("q", (document.sentences for document in file.documents())))
    if request.shard.of > 1 and not request.is_folder:
        own = request.shard.of_items(file.sizes or ())
        file = replace(file, first=own.start, end=own.stop)
    journal = None if target is None or request.force else read_journal(target)
    if journal is None:
        return file
    if not request.resume:
        raise InputError(f"--output {target}: was interrupted; --resume continues, --force restarts")
    logger.info(f"{file.name}: resumes after {journal.documents:,} documents")
    return replace(file, done=journal.documents)


# --- Files of target lines ---


def check_line_input(option: str, path: Path, request: Request) -> None:
    """Compares a file of target lines with the input, so that no line is translated with that of another.

    Raises:
        InputError: the request has several inputs, or another format than a sentence per line; the file has more or
            fewer lines than the input, or other boundaries.
    """
    source, *others = request.inputs
    if others or read_once(source) or source.is_dir():
        raise InputError(f"{option}: needs a single file as --input, no pipe")
    refuse_streams(path)
    if format_of(source.name, request.format, request.reading).name != PLAIN:
        raise InputError(f"{option}: needs text with a sentence per line, unlike {source}")
    for number, (line, own) in enumerate(zip_longest(read_lines(source), read_lines(path)), start=1):
        if line is None or own is None:
            raise InputError.at(path, number, f"{source} has {'fewer' if line is None else 'more'} lines")
        line, own = normalise(line), normalise(own)
        if own and own != line and (is_boundary(line) or is_boundary(own)):
            what = f"is {line or 'an empty line'}" if is_boundary(line) else "is a sentence"
            raise InputError.at(path, number, f"line {number} of {source} {what}; leave this line empty")


def remaining_lines(path: Path, file: InputFile) -> Iterator[str]:
    """Yields the target lines of the documents that remain to be translated; boundaries are empty lines."""
    written = replace(file, first=0, end=file.first + file.done)
    lines = islice(read_lines(path), sum(len(document.lines) for document in written.documents()), None)
    return ("" if is_boundary(normalise(line)) else line for line in lines)

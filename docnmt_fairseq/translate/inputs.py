"""Translation request: input files and their documents, output files, shards, and files of target lines."""

import logging
import os
import sys
from array import array
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, islice, zip_longest
from pathlib import Path
from typing import ContextManager, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import open_binary, read_lines, unpacked_name
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import file_lock, folder_lock, is_stream
from docnmt_fairseq.translate.formats import PLAIN, Document, Format, Reading, format_of, named_format
from docnmt_fairseq.translate.writers import read_journal

STANDARD = Path("-")  # standard input
EVERY = "*"  # pattern that matches all files of a folder
# Options with a file of target lines, one per input line; also arguments of DocumentTranslator.translate_lines.
LINE_INPUTS = ("target_prefix", "target_context")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shard:
    """Part of the work, ``--shard NUMBER/OF``."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Returns the shard of a text ``I/N``; ``ValueError`` if I is not between 1 and N."""
        number, of = map(int, text.split("/"))
        if not 1 <= number <= of:
            raise ValueError
        return cls(number, of)

    def of_items(self, sizes: Sequence[int]) -> range:
        """Returns the consecutive items of this shard; all shards get about the same total size.

        Args:
            sizes: size of each item, in the same order for all shards.
        """
        total = max(sum(sizes), 1)
        middles = [2 * end - size for size, end in zip(sizes, accumulate(sizes))]  # twice the middle of each item
        owners = [min(middle * self.of // (2 * total), self.of - 1) + 1 for middle in middles]
        first = sum(owner < self.number for owner in owners)
        return range(first, first + owners.count(self.number))

    def output(self, path: Path) -> Path:
        """Returns the file for this shard's part of an output file; sorted by name, parts are in order."""
        return path.with_name(f"{path.name}.shard-{self.number:0{len(str(self.of))}}-of-{self.of}")


@dataclass(frozen=True)
class Request:
    """Files to translate and their outputs."""

    # One file or ``-``, translated to the file ``output``; or several files or folders, whose translations get the same
    # names (unpacked) in the folder ``output``.
    inputs: Sequence[Path]
    output: Path | None = None  # None: standard output, for a single input
    pattern: str = EVERY  # glob pattern for the files of a folder
    force: bool = False  # replaces existing translations
    resume: bool = False  # skips existing translations and continues interrupted ones
    format: str = ""  # format of all files; "": by their endings
    reading: Reading = field(default_factory=Reading)
    shard: Shard = Shard()

    @property
    def is_folder(self) -> bool:
        """True if the output is a folder; shards then translate different files, otherwise parts of one file."""
        return len(self.inputs) > 1 or self.inputs[0].is_dir()

    def lock(self) -> ContextManager[None]:
        """Returns the lock that excludes other processes with the same output; see :attr:`pairs` for errors."""
        pairs = self.pairs  # before a lock file is written
        assert pairs and self.output is not None
        if self.shard.of > 1:
            return file_lock(self.shard.output(self.output / "files" if self.is_folder else self.output))
        return folder_lock(self.output) if self.is_folder else file_lock(self.output)

    @cached_property
    def pairs(self) -> List[Tuple[Path, Path]]:
        """Input files and their output files.

        Raises:
            InputError: there are no files; a shard cannot read its input again; an output is missing or unsuitable.
        """
        if self.output is None or (self.shard.of > 1 and any(map(read_once, self.inputs))):
            raise InputError("--output: needed for several inputs; --shard, --workers: need --input files, no pipes")
        pairs = list(self._pairs(self.output))
        if not pairs:
            raise InputError(f"--input {' '.join(map(str, self.inputs))}: contains no file {self.pattern}")
        self._check_outputs(pairs)
        return [(source, Path(os.path.realpath(target))) for source, target in pairs]

    def _pairs(self, output: Path) -> Iterator[Tuple[Path, Path]]:
        if not self.is_folder:
            yield self.inputs[0], output
            return
        for path in self.inputs:
            for file in _files_of(path, self.pattern) if path.is_dir() else [path]:
                relative = file.relative_to(path if path.is_dir() else path.parent)
                yield file, output / relative.parent / unpacked_name(relative.name)

    def _check_outputs(self, pairs: Sequence[Tuple[Path, Path]]) -> None:
        """Checks that no output replaces an input or another output, becomes an input, or has a misleading ending."""
        taken = {source.resolve() for source, _ in pairs}
        folders = [path.resolve() for path in self.inputs if path.is_dir()]
        for source, target in pairs:
            resolved = target.resolve()
            is_special = target.exists() and not target.is_file()
            if is_special or resolved in taken or any(map(resolved.is_relative_to, folders)):
                reasons = "is a folder or a pipe, lies in an input folder, is an input, or the output of two"
                raise InputError(f"--output {target}: {reasons}; choose another place")
            taken.add(resolved)
            own, by_target = format_of(source.name, self.format, self.reading).name, named_format(target.name)
            if by_target not in (None, own, named_format(source.name)):
                raise InputError(
                    f"--output {target}: has the ending of {by_target}, but {source} is {own}, and formats are not "
                    "converted; choose another name"
                )


def read_once(source: Path) -> bool:
    """Returns whether a source can be read only once: standard input, a pipe, a device."""
    return source == STANDARD or is_stream(source)


def _files_of(folder: Path, pattern: str) -> List[Path]:
    """Returns the files of a folder that match a pattern, without hidden ones.

    Raises:
        OSError: a folder in it cannot be read, so that its files would be missing silently.
    """

    def refuse(error: OSError) -> None:
        raise error

    found = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names if not name.startswith(".")]
    pattern = pattern.removeprefix("**/")
    return sorted(file for file in found if file.is_file() and file.relative_to(folder).match(pattern))


# --- Input files ---


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
    if request.output is None and not request.is_folder and request.shard.of == 1:
        return [_input_file(request.inputs[0], None, request)]
    pairs, shard = request.pairs, request.shard
    if request.is_folder:
        pairs = [pairs[number] for number in shard.of_items([source.stat().st_size for source, _ in pairs])]
    elif shard.of > 1:
        pairs = [(source, shard.output(target)) for source, target in pairs]
    check_existing([target for _, target in pairs], request)
    left = [pair for pair in pairs if request.force or not pair[1].exists()]
    if len(left) < len(pairs):
        logger.info(f"already translated: {len(pairs) - len(left):,} of {len(pairs):,} files")
    return [_input_file(*pair, request) for pair in left]


def check_existing(targets: Sequence[Path], request: Request) -> None:
    """Raises :class:`InputError` for finished or interrupted translations, unless the request says what to do."""
    started = [target for target in targets if target.exists() or read_journal(target) is not None]
    if started and not (request.force or request.resume):
        more = f" (and {len(started) - 1:,} more)" if len(started) > 1 else ""
        raise InputError(f"--output {started[0]}: exists or is incomplete{more}; --resume continues, --force restarts")


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
    logger.info(f"{file.name}: resumes after {journal.documents:,} documents")
    return replace(file, done=journal.documents)


# --- Files of target lines ---


def check_line_input(option: str, path: Path, request: Request) -> None:
    """Compares a file of target lines with the input, so that no line is translated with that of another.

    Raises:
        InputError: the request has several inputs, or another format than a sentence per line; the file has more or
            fewer lines than the input, or other boundaries.
    """
    source = request.inputs[0]
    is_text = not request.is_folder and format_of(source.name, request.format, request.reading).name == PLAIN
    if not is_text or read_once(source) or read_once(path):
        raise InputError(f"{option}: needs a single text file with a sentence per line as --input, and no pipes")
    for number, (line, own) in enumerate(zip_longest(read_lines(source), read_lines(path)), start=1):
        if not (line is not None and own is not None and _matches(normalise(own), normalise(line))):
            message = f"does not match line {number} of {source}; give a line for each of its lines, or an empty one"
            raise InputError.at(path, number, message)


def _matches(own: str, line: str) -> bool:
    """Returns whether a target line may stand for a line: both are sentences or the same boundary, or it is empty."""
    return not own or own == line or not (is_boundary(line) or is_boundary(own))


def remaining_lines(path: Path, file: InputFile) -> Iterator[str]:
    """Yields the target lines of the documents that remain to be translated; boundaries are empty lines."""
    written = replace(file, first=0, end=file.first + file.done)
    lines = islice(read_lines(path), sum(len(document.lines) for document in written.documents()), None)
    return ("" if is_boundary(normalise(line)) else line for line in lines)

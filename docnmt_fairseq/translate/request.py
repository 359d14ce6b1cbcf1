"""What is asked for: files, folders or standard input, and which file each becomes."""

import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Set, Tuple

from docnmt_fairseq.corpus.files import is_stream, led_to, packing_of, unpacked_name
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats import PLAIN, RUNNING, Reading, format_of
from docnmt_fairseq.translate.shards import Shard

STANDARD = Path("-")  # standard input
EVERY = "*"  # the pattern of all files of a folder

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        inputs: one file or ``-``, which becomes the file ``output``; or several files, or folders with all that is in
            them, whose translations get the same names in the folder ``output`` (unpacked).
        output: file or folder; None: standard output, for one text.
        pattern: of the names of a folder's files.
        force: replace translations that are there already.
        resume: leave them as they are, and go on where one was interrupted.
        format: of all files; "": as their endings say.
        reading: what formats are told.
        shard: the part of the work that is to be done.
        counts: a file of :func:`~docnmt_fairseq.translate.counts.write_counts`, without which every shard counts the
            sentences of all files.
    """

    inputs: Sequence[Path]
    output: Optional[Path] = None
    pattern: str = EVERY
    force: bool = False
    resume: bool = False
    format: str = ""
    reading: Reading = field(default_factory=Reading)
    shard: Shard = Shard()
    counts: Optional[Path] = None


def read_once(source: Path) -> bool:
    """Whether what it holds is gone when it was read: standard input, a pipe, a device."""
    return source == STANDARD or is_stream(source)


def pairs_of(request: Request) -> List[Tuple[Path, Path]]:
    """The files to translate, and what each becomes.

    Raises:
        InputError: there are none, or none where shards have theirs; two would become the same file, or one an input,
            or one of a name of another format; none is running text, which is to be divided.
    """
    inputs, output = request.inputs, request.output
    if output is None or (request.shard.of > 1 and STANDARD in inputs):
        raise InputError("--shards: give --input and --output; standard input and output have no shards")
    if request.shard.of > 1 and any(map(read_once, inputs)):
        raise InputError(f"--input {next(filter(read_once, inputs))}: can be read only once; --shards needs a file")
    check_pattern(request)
    pairs = [(source, led_to(target)) for source, target in _pairs(inputs, output, request.pattern)]
    if not pairs:
        raise InputError(f"--input {' '.join(map(str, inputs))}: no file {request.pattern} in it")
    _check_targets(pairs)
    _check_endings(pairs, request)
    check_split([source for source, _ in pairs], request)
    return pairs


def check_pattern(request: Request) -> None:
    """Refuses to choose among the files of a folder where there is none."""
    if request.pattern != EVERY and not any(path.is_dir() for path in request.inputs):
        raise InputError(
            f"--pattern {request.pattern}: is of the files of a folder, and no --input is one; leave it out"
        )


def check_split(sources: Sequence[Path], request: Request) -> None:
    """Refuses to divide running text where none of the files is taken for that.

    Raises:
        InputError: all are of formats with paragraphs of their own.
    """
    formats = [format_of(source.name, request.format, request.reading).name for source in sources]
    if request.reading.running and RUNNING not in formats:
        raise InputError(
            f"--split: {sources[0]} is {formats[0]}, which has paragraphs of its own; leave it out, or give --format "
            f"{RUNNING} to read all files so"
        )


def _check_targets(pairs: Sequence[Tuple[Path, Path]]) -> None:
    sources = {source.resolve() for source, _ in pairs}
    targets: Set[Path] = set()
    for source, target in pairs:
        if target.resolve() in sources:
            raise InputError(f"--output {target}: is an input; give another place")
        if target in targets:
            raise InputError(f"--output {target}: two inputs would become this file, one of them {source}")
        if packing_of(target):
            raise InputError(f"--output {target}: translations are not packed; leave {packing_of(target)} out")
        if target.is_dir():
            raise InputError(f"--output {target}: is a folder; give a file")
        targets.add(target)


def _check_endings(pairs: Sequence[Tuple[Path, Path]], request: Request) -> None:
    """Refuses names that say of translations that they are of another format than what is translated.

    Raises:
        InputError: names both.
    """
    for source, target in pairs:
        of_source, of_ending, of_target = (
            format_of(path.name, name, request.reading).name
            for path, name in ((source, request.format), (source, ""), (target, ""))
        )
        if of_target not in (PLAIN, RUNNING, of_source, of_ending):
            raise InputError(
                f"--output {target}: is a name of {of_target}, but what comes of {source} is {of_source}, as formats "
                "are not converted; give another name"
            )


def check_there(there: Sequence[Path], request: Request, files: int) -> None:
    """Refuses translations that are there already, unless it was said what to do about them.

    Raises:
        InputError: it was not.
    """
    if there and not (request.force or request.resume):
        more = f" (and {len(there) - 1:,} more)" if len(there) > 1 else ""
        raise InputError(f"--output {there[0]}: is there already{more}; --force replaces, --resume leaves it")
    if request.resume and there:
        logger.info(f"{len(there):,} of {files:,} files are there already")


def _pairs(inputs: Sequence[Path], output: Path, pattern: str) -> Iterator[Tuple[Path, Path]]:
    if len(inputs) == 1 and not inputs[0].is_dir():
        yield inputs[0], output
        return
    if output.exists() and not output.is_dir():
        raise InputError(f"--output {output}: is a file; several inputs need a folder")
    for path in inputs:
        if path == STANDARD:
            raise InputError("--input -: standard input goes alone")
        if not path.is_dir():
            yield path, output / unpacked_name(path.name)
            continue
        if output.resolve().is_relative_to(path.resolve()):
            raise InputError(f"--output {output}: lies in the input folder {path}; give another place")
        _check_readable(path)
        for file in _matching(path, pattern):
            relative = file.relative_to(path)
            if file.is_file() and not any(part.startswith(".") for part in relative.parts):
                yield file, output / relative.parent / unpacked_name(relative.name)


def _matching(folder: Path, pattern: str) -> List[Path]:
    try:
        return sorted(folder.rglob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise InputError(f"--pattern {pattern}: {error}; give one of names in the folder, e.g. '*.en'") from error


def _check_readable(folder: Path) -> None:
    """Refuses folders that cannot be looked into: nobody would notice that their files are missing.

    Raises:
        InputError: names one.
    """

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error

    for _, folders, _ in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]  # are left out anyway

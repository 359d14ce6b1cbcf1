"""Translation request: input files, output files, shards."""

import os
import re
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import ContextManager, Iterator, List, Sequence, Set, Tuple

from docnmt_fairseq.corpus.files import packing_of, unpacked_name
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import file_lock, folder_lock, is_stream
from docnmt_fairseq.translate.formats import RUNNING, Reading, format_of, named_format

STANDARD = Path("-")  # standard input
EVERY = "*"  # pattern that matches all files of a folder


@dataclass(frozen=True)
class Shard:
    """Part of the work, ``--shard NUMBER/OF``."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Returns the shard of a text ``I/N``.

        Raises:
            InputError: the text has another form, or I is not between 1 and N.
        """
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        shard = cls(*map(int, found.groups())) if found else cls(0)
        if not 1 <= shard.number <= shard.of:
            raise InputError(f"--shard {text}: expected I/N with I from 1 to N, e.g. 1/4")
        return shard

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
        """Returns the lock that excludes other processes with the same output."""
        assert self.output is not None
        if self.shard.of > 1:
            return file_lock(self.shard.output(self.output / "files" if self.is_folder else self.output))
        return folder_lock(self.output) if self.is_folder else file_lock(self.output)

    def check_split(self, sources: Sequence[Path]) -> None:
        """Checks that ``--split`` applies to at least one file.

        Raises:
            InputError: all formats define their own paragraphs.
        """
        formats = [format_of(source.name, self.format, self.reading).name for source in sources]
        if self.reading.running and RUNNING not in formats:
            raise InputError(
                f"--split: {sources[0]} is {formats[0]}, which has its own paragraphs; leave it out, or give "
                f"--format {RUNNING}"
            )

    def pairs(self) -> List[Tuple[Path, Path]]:
        """Returns the input files and their output files.

        Raises:
            InputError: there are no files; two have the same output; an output is an input, or has the ending of
                another format.
        """
        if self.output is None or (self.shard.of > 1 and any(map(read_once, self.inputs))):
            raise InputError("--shard, --workers: need --input files and --output, no pipes")
        pairs = [(source, Path(os.path.realpath(target))) for source, target in self._pairs(self.output)]
        if not pairs:
            raise InputError(f"--input {' '.join(map(str, self.inputs))}: contains no file {self.pattern}")
        self._check_outputs(pairs)
        self.check_split([source for source, _ in pairs])
        return pairs

    def _pairs(self, output: Path) -> Iterator[Tuple[Path, Path]]:
        if not self.is_folder:
            yield self.inputs[0], output
            return
        for path in self.inputs:
            if not path.is_dir():
                yield path, output / unpacked_name(path.name)
                continue
            if output.resolve().is_relative_to(path.resolve()):
                raise InputError(f"--output {output}: lies in the input folder {path}; choose another place")
            for file in _files_of(path, self.pattern):
                relative = file.relative_to(path)
                yield file, output / relative.parent / unpacked_name(relative.name)

    def _check_outputs(self, pairs: Sequence[Tuple[Path, Path]]) -> None:
        sources = {source.resolve() for source, _ in pairs}
        targets: Set[Path] = set()
        for source, target in pairs:
            if target in sources:
                raise InputError(f"--output {target}: is an input; choose another place")
            if target in targets:
                raise InputError(f"--output {target}: output of two inputs, one of them {source}")
            if packing_of(target):
                raise InputError(f"--output {target}: translations are not packed; leave {packing_of(target)} out")
            if target.is_dir():
                raise InputError(f"--output {target}: is a folder; give a file")
            targets.add(target)
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

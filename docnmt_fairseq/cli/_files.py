"""Files on command lines: a name must be one, and what is written is nothing that is read."""

import argparse
import os
from pathlib import Path
from typing import Any, Iterator

from docnmt_fairseq.errors import InputError


class Parser(argparse.ArgumentParser):
    """A parser, also of commands of a command, that refuses an empty name where a path is due."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.register("type", Path, _path)


def _path(text: str) -> Path:
    if not text:  # of a variable that is not set; as a path it would be the folder where the command is run
        raise argparse.ArgumentTypeError("an empty name; give one, '.' for this folder")
    return Path(text)


def check_output(args: argparse.Namespace) -> None:
    """Refuses an output that is one of the files that the command reads.

    Args:
        args: of any command.

    Raises:
        InputError: names it.
    """
    output = getattr(args, "output", None)
    if output is None or not os.path.isfile(output):
        return
    for name, value in vars(args).items():
        for path in () if name in ("output", "arguments") else _files(value):  # these: --output=FILE as it was given
            if path.is_file() and path.samefile(output):
                raise InputError(f"--output {output}: is {path}, which is read; give another file")


def _files(value: object) -> Iterator[Path]:
    """The files in an option's value: a path, NAME=FILE, several of them."""
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _files(one)
    elif isinstance(value, Path):
        yield value
    elif isinstance(value, str) and "=" in value:
        yield Path(value.partition("=")[2])

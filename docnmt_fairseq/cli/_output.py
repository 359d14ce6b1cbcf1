"""Output of commands: names of files on the command line, interruption."""

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Iterator

from docnmt_fairseq.errors import InputError


class Parser(argparse.ArgumentParser):
    """Parser, also of subcommands, that refuses empty paths, e.g. of unset shell variables."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.register("type", Path, _path)


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("an empty name; give one, '.' for this folder")
    return Path(text)


def check_output(args: argparse.Namespace) -> None:
    """Refuses an output file that is also an input file of the command.

    Raises:
        InputError: names the input.
    """
    output = getattr(args, "output", None)
    if output is None or not os.path.isfile(output):
        return
    for name, value in vars(args).items():
        for path in () if name in ("output", "arguments") else _files(value):
            if path.is_file() and path.samefile(output):
                raise InputError(f"--output {output}: is also the input {path}; give another file")


def _files(value: object) -> Iterator[Path]:
    """Files in the value of an option: a path, NAME=FILE, or several of them."""
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _files(one)
    elif isinstance(value, Path):
        yield value
    elif isinstance(value, str) and "=" in value:
        yield Path(value.partition("=")[2])


@contextlib.contextmanager
def one_line_interruption(program: str) -> Iterator[None]:
    """Prints one line on Ctrl-C instead of a traceback; the process still ends by the signal."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        sys.excepthook = lambda *_: None
        raise

"""Output of commands: names of files on the command line, standard output, interruption."""

import argparse
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any, Iterator, TextIO

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


class _StandardOutput:
    """Standard output that raises :class:`InputError` if it cannot be written."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes text."""
        with self._errors():
            return self._stream.write(text)

    def flush(self) -> None:
        """Writes buffered text."""
        with self._errors():
            self._stream.flush()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise InputError(
                f"standard output: {error.encoding} cannot encode {character!a}; set PYTHONIOENCODING=utf-8"
            ) from error
        except OSError as error:
            with contextlib.suppress(OSError, io.UnsupportedOperation):  # Python would flush again at exit
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise InputError(f"standard output: cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def checked_standard_output() -> Iterator[None]:
    """Raises :class:`InputError` if text that is printed inside the block cannot be written."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="surrogateescape")  # names of files that are not UTF-8
    sys.stdout = output = _StandardOutput(stream)
    try:
        yield
        output.flush()
    finally:
        sys.stdout = stream


@contextlib.contextmanager
def one_line_interruption(program: str) -> Iterator[None]:
    """Prints one line on Ctrl-C instead of a traceback; the process still ends by the signal."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        sys.excepthook = lambda *_: None
        raise

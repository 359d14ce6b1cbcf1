"""How commands end whose standard output cannot be written (``| head``, a full disk), or that Ctrl-C ends: one line."""

import contextlib
import io
import os
import sys
from typing import Any, Iterator, TextIO

from docnmt_fairseq.errors import InputError


class _StandardOutput:
    """Standard output that says by :class:`InputError` why it cannot be written."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes text."""
        with self._said():
            return self._stream.write(text)

    def flush(self) -> None:
        """Writes what was kept back."""
        with self._said():
            self._stream.flush()

    @contextlib.contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except UnicodeEncodeError as error:
            raise InputError(
                f"standard output: its encoding, {error.encoding}, has no {error.object[error.start]!a}; set "
                "PYTHONIOENCODING=utf-8, or write a file"
            ) from error
        except OSError as error:
            with contextlib.suppress(OSError, io.UnsupportedOperation):  # or Python would try again at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise InputError(f"standard output: cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def written_output() -> Iterator[None]:
    """What is printed inside the block is written at its end.

    Raises:
        InputError: it cannot be.
    """
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="surrogateescape")  # names of files that are no UTF-8 are printed as they are
    sys.stdout = output = _StandardOutput(stream)
    try:
        yield
        output.flush()
    finally:
        sys.stdout = stream


@contextlib.contextmanager
def interruption_told(program: str) -> Iterator[None]:
    """Of Ctrl-C inside the block one line is told, no traceback; it still ends the process, and a shell's loop."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        sys.excepthook = lambda *told: None
        raise

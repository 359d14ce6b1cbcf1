"""Errors of input and options, shown to the user in one line."""

import re
from contextlib import contextmanager
from typing import Iterable, Iterator, Optional, Tuple

UNSAFE = "Weights only load failed"  # PyTorch's message
GLOBAL = re.compile(r"\bGLOBAL (\S+)")  # refused function or class in that message


class InputError(ValueError):
    """Wrong input or option, with the file and line or the option, and the remedy.

    Every function that reads files, writes files or checks options may raise it.

    Attributes:
        place: file, line and message, if the error concerns one line of a file.
    """

    place: Optional[Tuple[object, int, str]] = None

    @classmethod
    def at(cls, path: object, line: int, message: str) -> "InputError":
        """Error about one line of a file.

        Args:
            path: file.
            line: line number, starting at 1.
            message: problem and remedy.
        """
        error = cls(f"{path}:{line}: {message}")
        error.place = path, line, message
        return error


def refuse(problems: Iterable[str]) -> None:
    """Raises one :class:`InputError` with all problems, if there are any."""
    found = list(problems)
    if found:
        raise InputError("; ".join(found))


@contextmanager
def needs_extra(extra: str, feature: object) -> Iterator[None]:
    """Context of imports of optional packages; the error of a missing one names the extra to install.

    Args:
        extra: optional dependencies in ``pyproject.toml``.
        feature: option, file or format that needs them.

    Raises:
        InputError: a package is missing.
    """
    try:
        yield
    except ImportError as error:
        raise InputError(f"{feature}: {error}; pip install 'docnmt_fairseq[{extra}]'") from error


def first_line(error: BaseException) -> str:
    """First line of an error message, or the name of the error.

    Omits the advice of PyTorch and NumPy to load files unsafely; names the global that PyTorch refused.
    """
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if line.startswith(UNSAFE):
        named = GLOBAL.search(str(error))
        return UNSAFE if named is None else f"{UNSAFE}: contains {named[1]}"
    return line.split(" If you trust the file", 1)[0]

"""The one exception that stands for "the input or an option is wrong": its text is shown to the user as it is."""

import re
from textwrap import shorten
from typing import Iterable, Optional, Tuple

REFUSED = "Weights only load failed"  # PyTorch's words
GLOBAL = re.compile(r"\bGLOBAL (\S+)")  # there, too: a function or class


class InputError(ValueError):
    """Bad input, named precisely enough to be mended: file and line, or option, and what to do about it.

    Attributes:
        place: file, line and what is wrong there, where that is known.
    """

    place: Optional[Tuple[object, int, str]] = None

    @classmethod
    def at(cls, path: object, line: int, message: str) -> "InputError":
        """The error for one line of a file.

        Args:
            path: the file, as the user knows it.
            line: counted from 1.
            message: what is wrong and what to do.
        """
        error = cls(f"{path}:{line}: {message}")
        error.place = path, line, message
        return error


def refuse(problems: Iterable[str]) -> None:
    """Raises one :class:`InputError` with all problems, if there are any."""
    found = list(problems)
    if found:
        raise InputError("; ".join(found))


def first_line(error: BaseException) -> str:
    """The first line of what an error says; its name if it says nothing.

    Advice of PyTorch and NumPy to load what may execute anything is left out; what PyTorch refuses to load is named.
    """
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if line.startswith(REFUSED):
        named = GLOBAL.search(str(error))
        return REFUSED if named is None else f"{REFUSED}: holds {named[1]}"
    return line.split(" If you trust the file", 1)[0]


def misfit(error: BaseException) -> str:
    """What PyTorch says first of parameters that do not fit a model, below its heading."""
    lines = str(error).strip().splitlines()
    return shorten(lines[1], 200) if len(lines) > 1 else first_line(error)

"""PyArrow, which is installed only where it is wanted: it reads Parquet, and text that Zstandard packed."""

import importlib
import io
from typing import Any, BinaryIO, cast

from docnmt_fairseq.errors import InputError


def module(name: str, reason: object) -> Any:
    """A module of PyArrow.

    Args:
        name: such as ``pyarrow.parquet``.
        reason: the file that needs it.

    Raises:
        InputError: PyArrow is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{reason}: needs pip install 'docnmt_fairseq[parquet]'") from error


def open_zst(path: object) -> BinaryIO:
    """A file that Zstandard packed, opened for reading.

    Raises:
        InputError: PyArrow is not installed.
        OSError: it cannot be opened.
    """
    return cast(BinaryIO, io.BufferedReader(module("pyarrow", path).input_stream(str(path), compression="zstd")))

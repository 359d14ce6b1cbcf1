"""The compiled library, built at first use if it is not installed, and calls of its functions.

A function takes one structure of numbers and pointers to tensors.
"""

import ctypes
import functools
import logging
import os
import shlex
from pathlib import Path
from typing import Optional

import numpy as np
from torch import Tensor

from docnmt_fairseq.native import cpu
from docnmt_fairseq.native.build import HERE, BuildError, build, compiler, library_name, source_hash, variants

logger = logging.getLogger(__name__)


def variant() -> str:
    """Best variant for the current processor."""
    best = cpu.capabilities().instruction_set
    return best if best in variants() else "baseline"


def cache_folder() -> Path:
    """Folder of libraries that were built at first use, one per state of the sources."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "docnmt_fairseq" / source_hash()


def opened(path: Path) -> Optional[ctypes.CDLL]:
    """Opens a library; None if it is missing or was built from other sources."""
    try:
        loaded = ctypes.CDLL(str(path))
        loaded.kernel_source.restype = ctypes.c_char_p
        if loaded.kernel_source().decode() != source_hash():
            return None
    except (OSError, AttributeError):
        return None
    return loaded


@functools.cache
def library() -> ctypes.CDLL:
    """Library for the current processor: installed, cached, or built now.

    Raises:
        BuildError, OSError: it cannot be built, written or loaded.
    """
    name = library_name(variant())
    cached = cache_folder() / name
    for path in (HERE / name, cached):
        if (found := opened(path)) is not None:
            return found
    logger.info("building the compiled kernels with %s (once, less than a minute)", shlex.join(compiler()))
    build(variant(), cached)
    return ctypes.CDLL(str(cached))


@functools.cache
def missing() -> Optional[str]:
    """Reason why there is no library on this machine, or None."""
    try:
        library()
    except (BuildError, OSError) as error:
        return str(error)
    return None


def fields(kind: type, names: str) -> "list[tuple[str, type]]":
    """Fields of one type."""
    return [(name, kind) for name in names.split()]


class Arguments(ctypes.Structure):
    """Structure that takes tensors and arrays as pointers; the caller keeps them alive."""

    def __init__(self, **values: object):
        super().__init__(**{name: self._plain(value) for name, value in values.items()})

    @staticmethod
    def _plain(value: object) -> object:
        if isinstance(value, Tensor):
            return value.data_ptr()
        return value.ctypes.data if isinstance(value, np.ndarray) else value


def call(function: str, arguments: Arguments) -> None:
    """Calls a function of the library without a result; other Python threads continue meanwhile."""
    compiled = getattr(library(), function)
    compiled.restype = None
    compiled(ctypes.byref(arguments))

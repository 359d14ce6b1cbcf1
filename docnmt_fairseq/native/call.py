"""Calls of compiled functions, each with one structure of numbers and pointers to tensors."""

import ctypes

import numpy as np
from torch import Tensor

from docnmt_fairseq.native.library import library


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

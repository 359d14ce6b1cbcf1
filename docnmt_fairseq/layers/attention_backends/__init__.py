"""Backends of attention between packed rows: who computes softmax(q kᵀ · scale) v of every row. One file each."""

from torch import Tensor

from docnmt_fairseq.layers.attention_backends import grouped, packed  # noqa: F401  (register)
from docnmt_fairseq.layers.attention_backends.base import ATTENTION_BACKENDS, AttentionBackend

PREFERENCE = ("packed", "grouped")  # fastest first; the last serves everything
BACKENDS = tuple(ATTENTION_BACKENDS[name]() for name in PREFERENCE)


def backend_for(q: Tensor, k: Tensor, v: Tensor) -> AttentionBackend:
    """The fastest backend that serves such queries, keys and values."""
    return next(backend for backend in BACKENDS if backend.serves(q, k, v))


__all__ = ["ATTENTION_BACKENDS", "AttentionBackend", "backend_for"]

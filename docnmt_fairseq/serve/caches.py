"""Limits of what PyTorch's libraries keep.

For each new shape of a matrix product oneDNN and what is above it keep a program, a thousand of them each. A search
that requests join has new shapes all the time: for hours its memory would grow, and what is kept would hardly ever be
used again.
"""

import os

KEPT = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}


def bound_caches() -> None:
    """Sets the limits, unless the environment says otherwise; before the first product."""
    for name, programs in KEPT.items():
        os.environ.setdefault(name, programs)

"""Parameters of tests of which only some are quick."""

from typing import Collection, Iterable, List

import pytest


def slow_except(quick: Collection[str], names: Iterable[str]) -> List:
    """Returns the names as parameters; those that are not in ``quick`` are slow."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]

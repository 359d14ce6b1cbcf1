"""Processes that end with the one that started them, so that a killed command leaves nothing at work behind."""

import ctypes
import signal
import sys

_PARENT_DIED = 1  # PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """Asks Linux to end the calling process when its parent ends, however that ends; elsewhere does nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)

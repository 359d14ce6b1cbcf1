"""Kernels: who computes attention to selected sentences. One file each; all give the same results.

Names of ``--context-kernel``: ``auto`` takes the fastest that can serve the tensors at hand.
"""

import functools
import logging

from torch import Tensor

from docnmt_fairseq.context.conditional.kernels import dense  # noqa: F401  (registers)
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.kernels.cpu import kernel as compiled  # noqa: F401  (registers)
from docnmt_fairseq.context.conditional.kernels.pytorch import kernel as grouped  # noqa: F401  (registers)
from docnmt_fairseq.context.conditional.kernels.triton import kernel as programs  # noqa: F401  (registers)
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)
PREFERENCE = {"cpu": ("compiled", "torch"), "cuda": ("triton", "torch")}  # fastest first, by the device's type


def kernel_for(name: str, x: Tensor) -> SelectionKernel:
    """The kernel of that name; for ``auto`` the fastest for tensors of x's device and type.

    Raises:
        InputError: the named kernel cannot be had on this machine, or does not serve such tensors.
        ValueError: there is no kernel of that name.
    """
    if name != "auto":
        kernel = KERNELS[name]()
        if not kernel.serves(x.device, x.dtype):
            reason = kernel.missing() or f"it does not serve {x.dtype} on {x.device.type}"
            raise InputError(f"--context-kernel {name}: {reason}")
        return kernel
    for preferred in PREFERENCE.get(x.device.type, ("torch",)):
        kernel = KERNELS[preferred]()
        if kernel.preferred(x.device, x.dtype):
            return kernel
        if lacking := kernel.missing():
            _say_once(f"attention kernel {preferred!r} is not used: {lacking}; slower ones take its place")
    raise AssertionError("one kernel serves everything")


@functools.cache
def _say_once(message: str) -> None:
    logger.warning(message)


__all__ = ["KERNELS", "SelectionKernel", "kernel_for"]

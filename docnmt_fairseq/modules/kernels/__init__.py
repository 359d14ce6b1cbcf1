"""Kernels: who computes attention to selected sentences. One file each; all give the same results.

Names of ``--context-kernel``: ``auto`` takes the fastest that can serve the tensors at hand.
"""

from torch import Tensor

from docnmt_fairseq.modules.kernels import grouped  # noqa: F401  (registers)
from docnmt_fairseq.modules.kernels.kernel import KERNELS, SelectionKernel

PREFERENCE = ("torch",)  # fastest first


def kernel_names() -> "list[str]":
    """Returns what ``kernel_for`` takes."""
    return ["auto", *KERNELS.names()]


def kernel_for(name: str, x: Tensor) -> SelectionKernel:
    """Returns the kernel of that name; for ``auto`` the fastest for tensors of x's device and type.

    Raises:
        ValueError: for an unknown name, or a kernel that cannot serve such tensors.
    """
    if name != "auto":
        kernel = KERNELS[name]()
        if not kernel.serves(x.device, x.dtype):
            raise ValueError(f"kernel {name!r} does not serve {x.dtype} on {x.device.type}")
        return kernel
    kernels = (KERNELS[name]() for name in PREFERENCE)
    return next(kernel for kernel in kernels if kernel.serves(x.device, x.dtype))


__all__ = ["KERNELS", "SelectionKernel", "kernel_for", "kernel_names"]

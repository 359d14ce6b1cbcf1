"""Kernels of attention to selected sentences. All give the same results."""

from docnmt_fairseq.context.conditional.kernels import compiled  # noqa: F401  (adds itself to KERNELS)
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel, kernel_for
from docnmt_fairseq.context.conditional.kernels.triton import kernel  # noqa: F401  (adds itself to KERNELS)

__all__ = ["KERNELS", "SelectionKernel", "kernel_for"]

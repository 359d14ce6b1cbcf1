"""Kernels of attention to selected sentences, one folder or file each. All give the same results."""

from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel, kernel_for
from docnmt_fairseq.context.conditional.kernels.cpu import kernel as compiled  # noqa: F401  (registers)
from docnmt_fairseq.context.conditional.kernels.pytorch import kernel as pytorch_kernel  # noqa: F401  (registers)
from docnmt_fairseq.context.conditional.kernels.triton import kernel as triton_kernel  # noqa: F401  (registers)

__all__ = ["KERNELS", "SelectionKernel", "kernel_for"]

"""What kernels compute in: float32 at least, also where states are of a half type or autocast is on."""

from contextlib import nullcontext
from typing import ContextManager

import torch
from torch import Tensor


def computing_type(dtype: torch.dtype) -> torch.dtype:
    """The type of relevance, logits and softmax for states of a type."""
    return torch.promote_types(dtype, torch.float32)


def without_autocast(x: Tensor) -> torch.autocast:
    """A context in which products on x's device keep the type of their factors."""
    return torch.autocast(x.device.type, enabled=False)


def attention_type(x: Tensor) -> torch.dtype:
    """The type in which PyTorch's attention is to compute states like x.

    On a CPU float32: there its backward pass takes four times as long in bfloat16, for sums less precise.
    """
    return computing_type(x.dtype) if x.device.type == "cpu" else x.dtype


def attention_precision(x: Tensor) -> ContextManager[None]:
    """A context in which PyTorch's attention keeps :func:`attention_type`."""
    return without_autocast(x) if x.device.type == "cpu" else nullcontext()

"""What kernels compute in: float32 at least, also where states are of a half type or autocast is on."""

import torch
from torch import Tensor


def computing_type(dtype: torch.dtype) -> torch.dtype:
    """The type of relevance, logits and softmax for states of a type."""
    return torch.promote_types(dtype, torch.float32)


def without_autocast(x: Tensor) -> torch.autocast:
    """A context in which products on x's device keep the type of their factors."""
    return torch.autocast(x.device.type, enabled=False)

"""Integers that stand for numbers of which some are equal, so that it is not left open which of these are largest."""

import torch
from torch import Tensor


def distinct(x: Tensor, places: Tensor) -> Tensor:
    """Different int64 numbers in the order of float32 ``x``, for equal ones in the opposite order of their places.

    The upper half orders as the number does, the lower half is less for a higher place.

    Args:
        x: [..., n].
        places: [n] or [..., n], in 0..2³² − 1.
    """
    bits = (x + 0.0).view(torch.int32)  # −0.0 becomes 0.0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # of negative numbers the bits fall as the number rises
    return (ordered.to(torch.int64) << 32) + (0xFFFFFFFF - places)

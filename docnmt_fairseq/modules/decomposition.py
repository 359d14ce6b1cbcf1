"""The one formula of context-aware layers ([Z] eq. 12): what a word means by itself and what its context makes of it.

w = χ v + (1 − χ) w′ with χ ∈ [0, 1], the context-free indicator of the text. Every context-aware layer is this mixture
with its own χ, v and w′: ``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections and equations as numbered there.
"""

from torch import Tensor


def compose(chi: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """Returns χ v + (1 − χ) w; shapes broadcast.

    Args:
        chi: χ, between 0 and 1.
        v: what stands in its share, e.g. a vector of the context.
        w: what stands in the rest.
    """
    return w + chi * (v - w)

"""The one formula of context-aware layers ([Z] eq. 12): what a word means by itself and what its context makes of it.

w = χ v + (1 − χ) w′ with χ ∈ [0, 1], the context-free indicator of the text. Every context-aware layer is this mixture
with its own χ, v and w′: ``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections and equations as numbered there.
"""

from typing import Optional

from torch import Tensor


def compose(chi: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """Returns χ v + (1 − χ) w; shapes broadcast.

    Args:
        chi: χ, between 0 and 1.
        v: what stands in its share, e.g. a vector of the context.
        w: what stands in the rest.
    """
    return w + chi * (v - w)


def compose_all(chi: Tensor, v: Tensor, w: Tensor, counted: Optional[Tensor] = None) -> Tensor:
    """Returns v Σ_i χ_i + Σ_i (1 − χ_i) w_i ([Z] eq. 14, 23), [..., b, d]: as two sums, no word is mixed by itself.

    Args:
        chi: χ_i, [..., b, n].
        v: [..., b, d].
        w: [..., n, d].
        counted: [..., b, n] how often each takes part, 0: not at all (padding); None: all of them once.
    """
    free, rest = (chi, 1 - chi) if counted is None else (counted * chi, counted * (1 - chi))
    return v * free.sum(-1, keepdim=True) + rest @ w

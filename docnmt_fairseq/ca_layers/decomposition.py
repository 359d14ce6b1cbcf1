"""The one formula of context-aware layers ([Z] eq. 12): what a token means by itself and what its context makes of it.

w = χ v + (1 − χ) w′ with χ ∈ [0, 1], the context-free indicator of the text. Every context-aware layer is this mixture
with its own χ, v and w′: ``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections and equations as numbered there.
"""

from typing import Callable, Iterator, Optional, TypeVar, Union

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.capture import ContextFreeIndicator, observer

S = TypeVar("S", bound=Union[nn.Linear, nn.Conv1d, nn.Conv2d])


def compose(chi: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """χ v + (1 − χ) w; shapes broadcast.

    Args:
        chi: χ, between 0 and 1.
        v: what stands in its share, e.g. a vector of the context.
        w: what stands in the rest.
    """
    return w + chi * (v - w)


def compose_all(chi: Tensor, v: Tensor, w: Tensor, counted: Optional[Tensor] = None) -> Tensor:
    """v Σ_i χ_i + Σ_i (1 − χ_i) w_i ([Z] eq. 14, 23), [..., b, d]: as two sums, no token is mixed by itself.

    Args:
        chi: χ_i, [..., b, n].
        v: [..., b, d].
        w: [..., n, d].
        counted: [..., b, n] how often each takes part, 0: not at all (padding); None: all of them once.
    """
    free, rest = (chi, 1 - chi) if counted is None else (counted * chi, counted * (1 - chi))
    return v * free.sum(-1, keepdim=True) + rest.to(w.dtype) @ w


class ReportsChi(nn.Module):
    """A layer w = χ v + (1 − χ) w′ that reports its χ; see ``decomposition``."""

    def indicator(self, score: Tensor) -> Tensor:
        """χ = σ(score) ([Z] eq. 19, 39) of the same shape; shows it to who records, one number an input."""
        chi = torch.sigmoid(score)
        self.show(lambda: chi)
        return chi

    def show(self, chi: Callable[[], Tensor]) -> None:
        """Shows χ, computed only now, to who records: one number an input, NaN of one that has none."""
        observe = observer(self, ContextFreeIndicator)
        if observe is not None:
            observe(ContextFreeIndicator(chi().detach().flatten()))


class ChiGated(ReportsChi):
    """One whose χ has parameters of its own, so that χ and the vectors can be trained in turn."""

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """The parameters that decide χ; all others of the layer make the vectors."""
        raise NotImplementedError


def begin_constant(score: S, bias: float) -> S:
    """A linear layer or convolution to one score, made to begin with χ = σ(bias) whatever the input."""
    nn.init.zeros_(score.weight)
    if score.bias is not None:
        nn.init.constant_(score.bias, bias)
    return score

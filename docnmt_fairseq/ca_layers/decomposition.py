"""Common base of context-aware layers: w = χ v + (1 − χ) w′ ([Z] eq. 12), and alternating training of χ.

χ ∈ [0, 1] is the context-free indicator of the text. Every context-aware layer is this mixture with its own χ, v and
w′. ``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections and equations are numbered as there.
"""

from abc import ABC, abstractmethod
from typing import Callable, Iterator, List, Optional, TypeVar, Union

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.capture import ContextFreeIndicator, observer

S = TypeVar("S", bound=Union[nn.Linear, nn.Conv1d, nn.Conv2d])


def compose(chi: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """χ v + (1 − χ) w; shapes broadcast."""
    return w + chi * (v - w)


def compose_all(chi: Tensor, v: Tensor, w: Tensor, counted: Optional[Tensor] = None) -> Tensor:
    """v Σ_i χ_i + Σ_i (1 − χ_i) w_i ([Z] eq. 14, 23), [..., b, d], computed as two sums.

    Args:
        chi: χ_i, [..., b, n].
        v: [..., b, d].
        w: [..., n, d].
        counted: [..., b, n] weight of each term, 0 at padding; None: all weigh 1.
    """
    free, rest = (chi, 1 - chi) if counted is None else (counted * chi, counted * (1 - chi))
    return v * free.sum(-1, keepdim=True) + rest.to(w.dtype) @ w


class ReportsChi(nn.Module):
    """Base of layers w = χ v + (1 − χ) w′ whose χ can be recorded."""

    def indicator(self, score: Tensor) -> Tensor:
        """χ = σ(score) ([Z] eq. 19, 39), of the same shape; recorded as one number per input."""
        chi = torch.sigmoid(score)
        self.show(lambda: chi)
        return chi

    def show(self, chi: Callable[[], Tensor]) -> None:
        """Records χ, one number per input (NaN if undefined); computed only if a recording is active."""
        observe = observer(self, ContextFreeIndicator)
        if observe is not None:
            observe(ContextFreeIndicator(chi().detach().flatten()))


class ChiGated(ReportsChi, ABC):
    """Base of layers whose χ has its own parameters, which can be trained alternately with the vectors."""

    @abstractmethod
    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters of χ; all others of the layer belong to the vectors."""


class ScoreGated(ChiGated):
    """Base of layers with χ = σ(vᵀc + b) from a linear layer or convolution ``score`` ([Z] eq. 39)."""

    score: nn.Module

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        return self.score.parameters()


def begin_constant(score: S, bias: float) -> S:
    """The linear layer or convolution to one score, initialised such that χ = σ(bias) for every input."""
    nn.init.zeros_(score.weight)
    if score.bias is not None:
        nn.init.constant_(score.bias, bias)
    return score


class AlternatingUpdates(nn.Module):
    """Trains χ and the vectors of a model's χ-gated layers alternately, ``em_steps`` updates each ([Z] sec. 4.2.1).

    Parameters outside χ-gated layers are always trained. Frozen parameters receive a gradient of zero, so that
    distributed processes still exchange the same gradients. Gradients flow to the layers below unchanged. ([Z] fixes
    the *values* of χ or w′, so that nothing flows through them. For embeddings w and w_σ that is equivalent; in a deep
    model whole layers below would be frozen, too. [Z] leaves open where v_0, v and w_0 belong: here to the vectors.)

    The state depends only on the number of updates (:meth:`set_num_updates`), so that resumed training is unaffected.

    Args:
        em_steps: updates per block.
    """

    def __init__(self, model: nn.Module, em_steps: int):
        super().__init__()
        gated = [module for module in model.modules() if isinstance(module, ChiGated)]
        self.em_steps = em_steps
        self.updates = 0
        of_chi = {parameter for layer in gated for parameter in layer.chi_parameters()}
        others = {parameter for layer in gated for parameter in layer.parameters()} - of_chi
        self._blocks = ([*of_chi], [*others])  # a tuple of lists: not registered as parameters of this module
        for number, block in enumerate(self._blocks):
            for parameter in block:
                if parameter.requires_grad:
                    parameter.register_hook(self._hook(number))

    @property
    def frozen(self) -> List[nn.Parameter]:
        """Parameters that are not trained in the current block."""
        return self._blocks[1 - self._trained]

    @property
    def _trained(self) -> int:
        return self.updates // self.em_steps % 2

    def _hook(self, block: int) -> Callable[[Tensor], Tensor]:
        return lambda gradient: gradient if block == self._trained else torch.zeros_like(gradient)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self.updates = num_updates

    def clear_frozen(self) -> None:
        """Removes zero gradients before the optimizer's step, so that momentum and weight decay do not apply.

        (A copy of all parameters, as in fairseq's --fp16, has its own gradients.)
        """
        for parameter in self.frozen:
            parameter.grad = None

"""CA-NN: a layer of any kind that is switched to a default value where its input says nothing."""

from typing import Iterator

import torch
from torch import Tensor, nn

from docnmt_fairseq.modules.context_aware_layers.chi_gated import ChiGated, begin_constant
from docnmt_fairseq.modules.decomposition import compose


class ContextAwareLayer(ChiGated):
    """w = χ(c) v(c) + (1 − χ(c)) w_0, χ(c) = σ(vᵀc + b), a number for each input ([Z] eq. 38-39).

    χ begins as σ(b) for all inputs, w_0 at zero. To v it adds ``inputs`` + 1 parameters of χ and ``outputs`` of w_0.

    Args:
        v: the layer, [..., inputs] to [..., outputs].
        inputs: width of c.
        outputs: width of w.
        chi_bias: b at the start.
    """

    def __init__(self, v: nn.Module, inputs: int, outputs: int, chi_bias: float = 0.0):
        super().__init__()
        self.v = v
        self.score = begin_constant(nn.Linear(inputs, 1), chi_bias)  # v, b of eq. 39
        self.default = nn.Parameter(torch.zeros(outputs))  # w_0

    def forward(self, c: Tensor) -> Tensor:
        """Returns w [..., outputs] from c [..., inputs]."""
        return self.switch(c, self.v(c))

    def switch(self, c: Tensor, v: Tensor) -> Tensor:
        """Returns w [..., outputs] from c [..., inputs] and v(c) [..., outputs]."""
        return compose(self.indicator(self.score(c)), v, self.default)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """Gives v and b of eq. 39; see :class:`ChiGated`."""
        return self.score.parameters()

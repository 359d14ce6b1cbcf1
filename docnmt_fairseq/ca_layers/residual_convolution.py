"""CA-RES as a convolution: a block of context-aware layers on every patch ([Z] sec. 3.5.1 and 4.7.2)."""

from typing import Callable, Iterator, List, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.ca_layers.convolution import around, convolution
from docnmt_fairseq.ca_layers.decomposition import ChiGated, begin_constant, compose
from docnmt_fairseq.ca_layers.residual import ResidualBlock, seen_widths
from docnmt_fairseq.layers.modules import ModulesOf


class PatchGate(ChiGated):
    """χ(c) v + (1 − χ(c)) w_0 at every place, c the patch around it ([Z] eq. 42), v given.

    Args:
        inputs: depth of what χ sees.
        outputs: depth of v.
        kernel: size of a patch.
        chi_bias: b of χ at the start.
    """

    def __init__(self, inputs: int, outputs: int, kernel: Sequence[int], chi_bias: float):
        super().__init__()
        self.score = begin_constant(convolution(inputs, 1, kernel), chi_bias)
        self.default = nn.Parameter(torch.zeros(outputs))  # w_0

    def forward(self, seen: Tensor, v: Tensor) -> Tensor:
        """[B, outputs, *size] of v and of what χ sees, padded already."""
        default = self.default.view(-1, *[1] * (v.dim() - 2))
        return compose(self.indicator(self.score(seen)), v, default)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """v and b of eq. 39; see :class:`ChiGated`."""
        return self.score.parameters()


class ConvolutionalResidual(ChiGated):
    """w_i = χ_i v_i + (1 − χ_i) w_{i0}, v_i = f(W_i * [c; w_{i−1}; …] + b_i), i = 1 … l, at every place; it gives w_l.

    As in :class:`~docnmt_fairseq.ca_layers.residual.ContextAwareResidual` layer i sees the input and the last n_v
    outputs in v_i, n_σ in χ_i, here their patches ([Z] eq. 40 and 42). Outside of the input is zero.

    Args:
        block: l, n_v, n_σ, b.
        inputs: depth of the input.
        outputs: depth of every w_i.
        kernel: size of a patch, one number for tokens, two for images.
        activation: f.
        chi_bias: b of every χ_i at the start.
    """

    def __init__(
        self,
        block: ResidualBlock,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        activation: Callable[[Tensor], Tensor] = torch.relu,
        chi_bias: float = 0.0,
    ):
        super().__init__()
        self.block, self.kernel, self.activation = block, tuple(kernel), activation
        widths = [inputs, *[outputs] * block.layers]

        def depths(seen: int) -> List[int]:
            return [sum(seen_widths(widths, i, seen)) for i in range(block.layers)]

        self.v = nn.ModuleList(convolution(depth, outputs, self.kernel) for depth in depths(block.seen_by_v))
        gated = [] if block.always_on else depths(block.seen_by_chi)
        self.gates = ModulesOf(PatchGate(depth, outputs, self.kernel, chi_bias) for depth in gated)

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, *size] from x [B, inputs, *size]."""
        padding, seen = around(self.kernel), [F.pad(x, around(self.kernel))]  # the input, then the nearest layer first
        w = x
        for i, v in enumerate(self.v):
            w = self.activation(v(torch.cat(seen[: 1 + self.block.seen_by_v], dim=1)))
            if not self.block.always_on:
                w = self.gates[i](torch.cat(seen[: 1 + self.block.seen_by_chi], dim=1), w)
            seen.insert(1, F.pad(w, padding))
        return w

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """v and b of eq. 39 of every layer; see :class:`ChiGated`."""
        for gate in self.gates:
            yield from gate.chi_parameters()

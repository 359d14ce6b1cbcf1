"""CA-NN: a layer of any kind that is switched to a default value where its input says nothing."""

from dataclasses import dataclass
from typing import Iterator

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ChiGated, begin_constant, compose
from docnmt_fairseq.layers.config import LayerConfig
from docnmt_fairseq.layers.feed_forward import FEED_FORWARDS, FeedForward, FeedForwardVariant
from docnmt_fairseq.options import option


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
        """w [..., outputs] from c [..., inputs]."""
        return self.switch(c, self.v(c))

    def switch(self, c: Tensor, v: Tensor) -> Tensor:
        """w [..., outputs] from c [..., inputs] and v(c) [..., outputs]."""
        return compose(self.indicator(self.score(c)), v, self.default)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """v and b of eq. 39; see :class:`ChiGated`."""
        return self.score.parameters()


@dataclass(frozen=True)
class ChiOptions(FeedForwardVariant.NoOptions):
    """The option of all context-aware feed-forwards."""

    chi_bias: float = option(
        3.0, "initial bias of χ in feed-forwards: at 3 χ begins at 0.95 for every token, near the standard feed-forward"
    )


@FEED_FORWARDS.register("ca-nn")
class ContextAwareFeedForward(ContextAwareLayer, FeedForwardVariant):
    """The usual feed-forward behind an indicator: w = χ(c) v(c) + (1 − χ(c)) w_0, v(c) = W_2 f(W_1 c + b_1) + b_2.

    It has as many parameters as the usual one with one hidden unit more, which can begin it.
    """

    Options = ChiOptions

    def __init__(self, layer: LayerConfig, options: ChiOptions):
        super().__init__(FeedForward(layer), layer.embed_dim, layer.embed_dim, options.chi_bias)

"""Context-aware feed-forwards: CA-NN gates one layer, CA-RES a block of layers."""

from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.decomposition import ScoreGated, begin_constant, compose
from docnmt_fairseq.layers.base import (
    FEED_FORWARDS,
    FeedForward,
    FeedForwardVariant,
    LayerConfig,
    NoOptions,
    projection,
)
from docnmt_fairseq.options import option


class ContextAwareLayer(ScoreGated):
    """w = χ(c) v(c) + (1 − χ(c)) w_0, χ(c) = σ(vᵀc + b), one number per input ([Z] eq. 38-39).

    χ starts as σ(b) for all inputs, w_0 at zero. The layer adds ``inputs`` + 1 parameters of χ and ``outputs`` of w_0.

    Args:
        v: the layer, [..., inputs] to [..., outputs].
        chi_bias: initial b.
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


@dataclass(frozen=True)
class ChiOptions(NoOptions):
    """Option of all context-aware feed-forwards."""

    chi_bias: float = option(
        3.0, "initial bias of χ in feed-forwards; at 3, χ starts at 0.95 for every token, close to the standard one"
    )


@FEED_FORWARDS.register("ca-nn")
class ContextAwareFeedForward(ContextAwareLayer, FeedForwardVariant):
    """The standard feed-forward with an indicator: w = χ(c) v(c) + (1 − χ(c)) w_0, v(c) = W_2 f(W_1 c + b_1) + b_2.

    It has as many parameters as a standard feed-forward with one more hidden unit, which can initialise it.
    """

    Options = ChiOptions

    def __init__(self, layer: LayerConfig, options: ChiOptions):
        super().__init__(FeedForward(layer), layer.embed_dim, layer.embed_dim, options.chi_bias)


@dataclass(frozen=True)
class ResidualBlock:
    """The tuple (l, n_v, n_σ, b) of [Z] sec. 4.7.1."""

    layers: int = 2  # l
    seen_by_v: int = 1  # n_v, number of previous outputs that v_i sees in addition to c
    seen_by_chi: int = 1  # n_σ, the same for χ_i; unused with ``always_on``
    always_on: bool = False  # b, χ ≡ 1: no indicator, no default values

    @classmethod
    def parse(cls, text: str) -> "ResidualBlock":
        """Parses a block such as ``2,1,1,0``; with b = 1, n_σ may be ``-``."""
        layers, seen_by_v, seen_by_chi, always_on = (part.strip() for part in text.split(","))
        if always_on == "1":
            return cls(int(layers), int(seen_by_v), always_on=True)
        return cls(int(layers), int(seen_by_v), int(seen_by_chi))


class JoinedLayer(nn.Module):
    """dropout(f(W [c; w_{i−1}; …; w_{i−n_v}] + b)), the default v_i of a block; f None: W [c; …] + b."""

    def __init__(
        self,
        inputs: Sequence[int],
        outputs: int,
        activation: Optional[Callable[[Tensor], Tensor]] = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.linear = projection(sum(inputs), outputs, zero_bias=True)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, *inputs: Tensor) -> Tensor:
        y = self.linear(torch.cat(inputs, dim=-1))
        return y if self.activation is None else self.dropout(self.activation(y))


class ContextAwareResidual(nn.Module):
    """w_i = χ_i(c, w_{i−1}, …) v_i(c, w_{i−1}, …) + (1 − χ_i) w_{i0} for i = 1 … l; the result is w_l ([Z] eq. 42).

    v_i sees the previous n_v outputs and χ_i the previous n_σ, nearest first. With (2, 1, –, 1) and
    v_2(c, w_1) = c + w_1, it is the residual block c + v_1(c).

    Args:
        v: v_1 … v_l, called with c and the previous outputs that they see.
        widths: widths of c, w_1, …, w_l.
    """

    def __init__(self, block: ResidualBlock, v: Sequence[nn.Module], widths: Sequence[int], chi_bias: float = 0.0):
        super().__init__()
        self.block = block
        self.layers = nn.ModuleList(v)
        if not block.always_on:
            seen = [sum(seen_widths(widths, i, block.seen_by_chi)) for i in range(block.layers)]
            gated = zip(v, seen, widths[1:])
            self.layers = nn.ModuleList(ContextAwareLayer(*layer, chi_bias=chi_bias) for layer in gated)

    def forward(self, c: Tensor) -> Tensor:
        """w_l [..., last width] from c [..., first width]."""
        outputs: List[Tensor] = []  # nearest first
        for layer in self.layers:
            seen = (c, *outputs[: self.block.seen_by_v])
            if self.block.always_on or not isinstance(layer, ContextAwareLayer):
                w = layer(*seen)
            else:
                w = layer.switch(torch.cat([c, *outputs[: self.block.seen_by_chi]], dim=-1), layer.v(*seen))
            outputs.insert(0, w)
        return outputs[0]


def seen_widths(widths: Sequence[int], layer: int, seen: int) -> List[int]:
    """Input widths of layer ``layer`` (from 0): c and the previous ``seen`` outputs, nearest first."""
    return [widths[0], *[widths[i] for i in range(layer, max(0, layer - seen), -1)]]


def joined_layers(
    block: ResidualBlock, widths: Sequence[int], activation: Callable[[Tensor], Tensor], dropout: float = 0.0
) -> List[nn.Module]:
    """Returns v_1 … v_l of a block as :class:`JoinedLayer`, the last one linear; ``widths`` of c, w_1, …, w_l."""
    v: List[nn.Module] = []
    for i in range(block.layers):
        f = activation if i < block.layers - 1 else None
        v.append(JoinedLayer(seen_widths(widths, i, block.seen_by_v), widths[i + 1], f, dropout))
    return v


@FEED_FORWARDS.register("ca-res")
class ResidualFeedForward(ContextAwareResidual, FeedForwardVariant):
    """A block of context-aware layers as the feed-forward; hidden layers share its width."""

    @dataclass(frozen=True)
    class Options(ChiOptions):
        """The block."""

        ca_res_block: str = option(
            "2,1,1,0", "ca-res block l,n_v,n_σ,b: number of layers; number of previous layers that a layer sees in "
            "addition to the block's input, and that its χ sees; 1 for χ = 1 throughout (n_σ may then be -). The l - 1 "
            "hidden layers share --encoder-ffn-embed-dim and --decoder-ffn-embed-dim"
        )  # fmt: skip

    def __init__(self, layer: LayerConfig, options: "ResidualFeedForward.Options"):
        block, d = ResidualBlock.parse(options.ca_res_block), layer.embed_dim
        hidden = layer.ffn_dim // max(1, block.layers - 1)
        widths = [d, *[hidden] * (block.layers - 1), d]
        v = joined_layers(block, widths, layer.activation, layer.activation_dropout)
        super().__init__(block, v, widths, options.chi_bias)

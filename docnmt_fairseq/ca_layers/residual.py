"""CA-RES: a block of context-aware layers, each of which sees the block's input and layers before it."""

from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Sequence

import torch
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.feed_forward import ChiOptions, ContextAwareLayer
from docnmt_fairseq.layers.config import LayerConfig
from docnmt_fairseq.layers.feed_forward import FEED_FORWARDS, FeedForwardVariant
from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class ResidualBlock:
    """The tuple (l, n_v, n_σ, b) of [Z] sec. 4.7.1.

    Attributes:
        layers: l.
        seen_by_v: n_v, outputs of layers before it that v_i sees beside c.
        seen_by_chi: n_σ, those that χ_i sees beside c; means nothing with ``always_on``.
        always_on: b, χ ≡ 1: no indicator, no default values.
    """

    layers: int = 2
    seen_by_v: int = 1
    seen_by_chi: int = 1
    always_on: bool = False

    @classmethod
    def parse(cls, text: str) -> "ResidualBlock":
        """The block of e.g. ``2,1,1,0``; with b = 1 the third may be ``-``. ``ValueError`` if it is none."""
        parts = [part.strip() for part in text.split(",")]
        if len(parts) == 4 and parts[3] == "1" and parts[2] == "-":
            parts[2] = "1"
        if len(parts) != 4 or not all(part.isdecimal() for part in parts) or parts[3] not in ("0", "1"):
            raise ValueError(f"{text!r} is not l,n_v,n_σ,b such as 2,1,1,0 or 2,1,-,1")
        layers, seen_by_v, seen_by_chi = (int(part) for part in parts[:3])
        if min(layers, seen_by_v, seen_by_chi) < 1:
            raise ValueError(f"{text!r}: l, n_v and n_σ must be at least 1")
        return cls(layers, seen_by_v, seen_by_chi, parts[3] == "1")


class JoinedLayer(nn.Module):
    """f(W [c; w_{i−1}; …; w_{i−n_v}] + b): the v_i of a block that is given no other.

    Args:
        inputs: widths of c and of what comes behind it.
        outputs: width of the result.
        activation: f, None: the identity.
    """

    def __init__(self, inputs: Sequence[int], outputs: int, activation: Optional[Callable[[Tensor], Tensor]] = None):
        super().__init__()
        self.linear = projection(sum(inputs), outputs, zero_bias=True)
        self.activation = activation

    def forward(self, *inputs: Tensor) -> Tensor:
        """[..., outputs]."""
        y = self.linear(torch.cat(inputs, dim=-1))
        return y if self.activation is None else self.activation(y)


class ContextAwareResidual(nn.Module):
    """w_i = χ_i(c, w_{i−1}, …) v_i(c, w_{i−1}, …) + (1 − χ_i) w_{i0} for i = 1 … l; the result is w_l ([Z] eq. 42).

    Layer i has i − 1 layers before it and sees the last n_v and n_σ of these, the nearest first. With (2, 1, –, 1) and
    v_2(c, w_1) = c + w_1 it is the residual block c + v_1(c).

    Args:
        block: l, n_v, n_σ, b.
        v: v_1 … v_l, called with c and what they see of the layers before, each [..., its width].
        widths: of c, w_1, …, w_l.
        chi_bias: b of every χ_i at the start.
    """

    def __init__(self, block: ResidualBlock, v: Sequence[nn.Module], widths: Sequence[int], chi_bias: float = 0.0):
        super().__init__()
        if len(v) != block.layers or len(widths) != block.layers + 1:
            raise ValueError(f"{block.layers} layers need as many v and one width more, not {len(v)} and {len(widths)}")
        self.block = block
        self.layers = nn.ModuleList(v)
        if not block.always_on:
            seen = [sum(seen_widths(widths, i, block.seen_by_chi)) for i in range(block.layers)]
            gated = zip(v, seen, widths[1:])
            self.layers = nn.ModuleList(ContextAwareLayer(*layer, chi_bias=chi_bias) for layer in gated)

    def forward(self, c: Tensor) -> Tensor:
        """w_l [..., last width] from c [..., first width]."""
        outputs: List[Tensor] = []  # the nearest first
        for layer in self.layers:
            seen = (c, *outputs[: self.block.seen_by_v])
            if self.block.always_on or not isinstance(layer, ContextAwareLayer):
                w = layer(*seen)
            else:
                w = layer.switch(torch.cat([c, *outputs[: self.block.seen_by_chi]], dim=-1), layer.v(*seen))
            outputs.insert(0, w)
        return outputs[0]


def seen_widths(widths: Sequence[int], layer: int, seen: int) -> List[int]:
    """The widths of what a layer, from 0, sees: c and the ``seen`` layers before it, the nearest first."""
    return [widths[0], *[widths[i] for i in range(layer, max(0, layer - seen), -1)]]


def joined_layers(
    block: ResidualBlock, widths: Sequence[int], activation: Callable[[Tensor], Tensor]
) -> List[nn.Module]:
    """The v_1 … v_l of a block of :class:`JoinedLayer`, the last of them linear.

    Args:
        block: l, n_v, n_σ, b.
        widths: of c, w_1, …, w_l.
        activation: of all but the last.
    """
    v: List[nn.Module] = []
    for i in range(block.layers):
        f = activation if i < block.layers - 1 else None
        v.append(JoinedLayer(seen_widths(widths, i, block.seen_by_v), widths[i + 1], f))
    return v


class DroppingActivation(nn.Module):
    """Dropout behind an activation."""

    def __init__(self, activation: Callable[[Tensor], Tensor], dropout: float):
        super().__init__()
        self.activation = activation
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return self.dropout(self.activation(x))


@FEED_FORWARDS.register("ca-res")
class ResidualFeedForward(ContextAwareResidual, FeedForwardVariant):
    """A block of context-aware layers in the place of the feed-forward; its width is shared out among hidden layers."""

    @dataclass(frozen=True)
    class Options(ChiOptions):
        """The block."""

        ca_res_block: str = option(
            "2,1,1,0", "block of ca-res as l,n_v,n_σ,b: layers; how many layers before it a layer sees beside the "
            "block's input, and its χ; 1 for χ = 1 throughout (n_σ may then be -). --encoder-ffn-embed-dim and "
            "--decoder-ffn-embed-dim are shared out among the l - 1 hidden layers"
        )  # fmt: skip

    def __init__(self, layer: LayerConfig, options: "ResidualFeedForward.Options"):
        block, d = ResidualBlock.parse(options.ca_res_block), layer.embed_dim
        hidden = layer.ffn_dim // max(1, block.layers - 1)
        widths = [d, *[hidden] * (block.layers - 1), d]
        activation = DroppingActivation(layer.activation, layer.activation_dropout)
        super().__init__(block, joined_layers(block, widths, activation), widths, options.chi_bias)

    @classmethod
    def problems(cls, side: str, ffn_dim: int, options: "ResidualFeedForward.Options") -> Iterator[str]:
        """See :class:`~docnmt_fairseq.layers.feed_forward.FeedForwardVariant`."""
        try:
            hidden = ResidualBlock.parse(options.ca_res_block).layers - 1
        except ValueError as error:
            yield f"--ca-res-block {error}"
            return
        if hidden and ffn_dim % hidden:
            yield f"--{side}-ffn-embed-dim {ffn_dim} cannot be shared out among {hidden} hidden layers"

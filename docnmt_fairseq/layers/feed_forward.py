"""The position-wise feed-forward of Vaswani et al. (2017), sec. 3.3, and the registry of its variants."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Type

from torch import Tensor, nn

from docnmt_fairseq.layers.base import LayerConfig, projection
from docnmt_fairseq.registry import Registry


class FeedForwardVariant(nn.Module):
    """Contract: ``cls(layer, options)``; a function of each token independently, [..., d] to [..., d].

    Class attributes:
        Options: frozen dataclass of its own options; see :class:`~docnmt_fairseq.context.base.ContextMechanism`.
    """

    @dataclass(frozen=True)
    class NoOptions:
        """No options."""

    Options: Type[Any] = NoOptions


FEED_FORWARDS: Registry[FeedForwardVariant] = Registry("feed-forward")


class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2.

    Args:
        layer: widths, activation and dropout.
        linear: constructor of the linear layers; the default initialises like fairseq's layers.
    """

    def __init__(self, layer: LayerConfig, linear: Callable[[int, int], nn.Linear] = nn.Linear):
        super().__init__()
        self.activation = layer.activation
        self.fc1 = linear(layer.embed_dim, layer.ffn_dim)
        self.fc2 = linear(layer.ffn_dim, layer.embed_dim)
        self.activation_dropout = nn.Dropout(layer.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[..., d] from x [..., d]."""
        return self.fc2(self.activation_dropout(self.activation(self.fc1(x))))


@FEED_FORWARDS.register("standard")
class StandardFeedForward(FeedForward, FeedForwardVariant):
    """The feed-forward of fairseq's Transformer: W_2 f(W_1 x + b_1) + b_2."""

    def __init__(self, layer: LayerConfig, options: FeedForwardVariant.NoOptions):
        super().__init__(layer)


class FeedForwardSubLayer(FeedForward):
    """LayerNorm(x + W_2 f(W_1 x + b_1) + b_2), for mechanisms with their own feed-forward sub-layer."""

    def __init__(self, layer: LayerConfig):
        super().__init__(layer, partial(projection, zero_bias=True))
        self.dropout = nn.Dropout(layer.residual_dropout)
        self.layer_norm = nn.LayerNorm(layer.embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """[N, d] from x [N, d]."""
        return self.layer_norm(x + self.dropout(super().forward(x)))

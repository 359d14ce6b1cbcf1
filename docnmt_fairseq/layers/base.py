"""Building blocks of layers: their configuration, linear projections, typed module lists, feed-forwards, gate."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Generic, Iterable, Iterator, Optional, Type, TypeVar

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.capture import ContextShare, observer
from docnmt_fairseq.registry import Registry

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class LayerConfig:
    """Sizes and dropout of the layer that a part belongs to.

    Attributes:
        embed_dim: d, width of the layer's states.
        heads: H, number of attention heads, a divisor of d; in the ``heads`` placement the number of extra heads.
        head_dim: d_k.
        dropout: dropout of attention weights.
        zero_init: initialise the output with zero, so that a residual sub-layer starts as the identity. (If a gate
            weighs the output, the gate starts as the identity instead.)
        source_dim: width of the source tokens that context comes from; None: d (always, in the encoder).
        source_heads: H of the attention that encodes source sentences; None: d / d_k.
        ffn_dim: width of a feed-forward's hidden layer, or of all hidden layers together.
        activation: activation of a feed-forward.
        activation_dropout: dropout inside a feed-forward.
        residual_dropout: dropout of a sub-layer's output before the residual connection.
        seed: seed of random choices.
    """

    embed_dim: int
    heads: int
    head_dim: int
    dropout: float = 0.0
    zero_init: bool = False
    source_dim: Optional[int] = None
    source_heads: Optional[int] = None
    ffn_dim: int = 2048
    activation: Callable[[Tensor], Tensor] = torch.relu
    activation_dropout: float = 0.0
    residual_dropout: float = 0.0
    seed: int = 1


def projection(
    inputs: int, outputs: int, gain: float = 1.0, zero_bias: bool = False, zero: bool = False, bias: bool = True
) -> nn.Linear:
    """Linear layer with Xavier-uniform weights, initialised like the projections of fairseq's attention.

    Args:
        gain: gain of the Xavier initialisation; fairseq uses 1/√2 for queries, keys and values.
        zero_bias: start with a zero bias instead of PyTorch's default.
        zero: start with zero weights and bias: a residual sub-layer that ends in it starts as the identity.
    """
    linear = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(linear.weight, gain=gain)
    if zero:
        nn.init.zeros_(linear.weight)
    if bias and (zero or zero_bias):
        nn.init.zeros_(linear.bias)
    return linear


class ModulesOf(nn.ModuleList, Generic[M]):
    """Module list with elements of a known class, for type checkers."""

    def __init__(self, modules: Iterable[M] = ()):
        super().__init__(modules)

    def __iter__(self) -> Iterator[M]:
        return super().__iter__()  # type: ignore[return-value]

    def __getitem__(self, number: int) -> M:  # type: ignore[override]  # no slices
        return super().__getitem__(number)  # type: ignore[return-value]


@dataclass(frozen=True)
class NoOptions:
    """Base class of the options of a part, and the options of parts without any."""


class FeedForwardVariant(nn.Module):
    """Contract: ``cls(layer, options)``; a function of each token independently, [..., d] to [..., d].

    Class attributes:
        Options: frozen dataclass of its own options; see :class:`~docnmt_fairseq.context.base.ContextMechanism`.
    """

    Options: Type[Any] = NoOptions


FEED_FORWARDS: Registry[FeedForwardVariant] = Registry("feed-forward")


class FeedForward(nn.Module):
    """W_2 f(W_1 x + b_1) + b_2."""

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

    def __init__(self, layer: LayerConfig, options: NoOptions):
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


class ContextGate(nn.Module):
    """H = g ⊙ H^source + (1 − g) ⊙ H^context, g = σ(W_g [H^source; H^context] + b_g) ([M] eq. 16-17).

    The same gate is used by Voita et al. (2018), sec. 3, and Miculicich et al. (2018), sec. 2.

    No finite W_g, b_g make g exactly 1, so the formula cannot be initialised as the identity. ``zero_init`` multiplies
    the share of the context by a learned scalar s, H = H^source + s (1 − g) ⊙ (H^context − H^source), which starts at
    0: exactly the sentence-level model. With s = 1 it is the formula.
    """

    def __init__(self, embed_dim: int, zero_init: bool = False):
        super().__init__()
        self.gate = projection(2 * embed_dim, embed_dim, zero_bias=True)  # W_g, b_g
        self.scale = nn.Parameter(torch.zeros(1)) if zero_init else None  # s

    def forward(self, source: Tensor, context: Tensor, has_context: Optional[Tensor] = None) -> Tensor:
        """Gated sum [N, d].

        Args:
            has_context: [N] mask of tokens with context; the others keep H^source. None: all.
        """
        share = 1 - torch.sigmoid(self.gate(torch.cat([source, context], dim=-1)))  # [N, d]
        if self.scale is not None:
            share = share * self.scale
        observe = observer(self)
        if observe is not None:
            let_through = share if has_context is None else share.masked_fill(~has_context[:, None], torch.nan)
            observe(ContextShare(let_through.detach()))
        mixed = source + share * (context - source)
        return mixed if has_context is None else torch.where(has_context[:, None], mixed, source)

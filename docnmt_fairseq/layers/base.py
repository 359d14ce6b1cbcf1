"""Building blocks of layers: the configuration that their parts receive, linear projections, typed module lists."""

from dataclasses import dataclass
from typing import Callable, Generic, Iterable, Iterator, Optional, TypeVar

import torch
from torch import Tensor, nn

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
        inputs: input width.
        outputs: output width.
        gain: gain of the Xavier initialisation; fairseq uses 1/√2 for queries, keys and values.
        zero_bias: start with a zero bias instead of PyTorch's default.
        zero: start with zero weights and bias: a residual sub-layer that ends in it starts as the identity.
        bias: add a bias.
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

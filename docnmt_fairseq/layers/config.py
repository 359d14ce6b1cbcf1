"""What the parts of a layer are built from: the layer's widths, heads and dropouts."""

from dataclasses import dataclass
from typing import Callable, Optional

import torch
from torch import Tensor


@dataclass(frozen=True)
class LayerConfig:
    """The layer that a part stands in.

    Attributes:
        embed_dim: d, width of the layer's states.
        heads: H of an attention, a divisor of d; the number of extra heads where these are added to the layer's own.
        head_dim: d_k.
        dropout: of attention weights.
        zero_init: start with an output of zero, so that a residual sub-layer begins as the identity. (Where a gate
            weighs the output, the gate begins as the identity.)
        source_dim: width of the source tokens that context comes from, None: d too (always, in the encoder).
        source_heads: H of the attention that encodes source sentences, None: d / d_k.
        ffn_dim: width of a feed-forward's hidden layer, or of all together.
        activation: of a feed-forward.
        activation_dropout: inside a feed-forward.
        residual_dropout: of a sub-layer's output, before it is added to what was there.
        seed: of random choices.
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

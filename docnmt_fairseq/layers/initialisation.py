"""Linear maps initialised as fairseq initialises its attention's."""

from torch import nn


def projection(
    inputs: int, outputs: int, gain: float = 1.0, zero_bias: bool = False, zero: bool = False, bias: bool = True
) -> nn.Linear:
    """A linear map with Xavier-uniform weights.

    Args:
        inputs: input width.
        outputs: output width.
        gain: of the Xavier initialisation; fairseq takes 1/√2 for queries, keys and values.
        zero_bias: start with a bias of zero instead of PyTorch's default.
        zero: start with weights and bias of zero: a residual sub-layer that ends in it begins as the identity.
        bias: whether it has one.
    """
    linear = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(linear.weight, gain=gain)
    if zero:
        nn.init.zeros_(linear.weight)
    if bias and (zero or zero_bias):
        nn.init.zeros_(linear.bias)
    return linear

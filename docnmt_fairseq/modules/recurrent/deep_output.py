"""What a recurrent decoder makes of its state, the word before and the context, before the vocabulary."""

import torch
from torch import Tensor, nn

from docnmt_fairseq.modules.initialisation import projection

DEEP_OUTPUTS = ("tanh", "maxout")


class DeepOutput(nn.Module):
    """t_i = tanh(W_s s_i + W_y y_{i−1} + W_c c_i + b); maxout: the larger one of each pair of twice as many sums.

    (In Bahdanau et al. 2015, A.2.2, it is s_{i−1} that is seen; its own code and later ones take s_i.)

    Args:
        state_dim: of s_i.
        input_dim: of y_{i−1}.
        context_dim: of c_i.
        output_dim: of t_i.
        kind: of ``DEEP_OUTPUTS``.
    """

    def __init__(self, state_dim: int, input_dim: int, context_dim: int, output_dim: int, kind: str = "tanh"):
        super().__init__()
        self.maxout = kind == "maxout"
        self.sums = projection(
            state_dim + input_dim + context_dim, output_dim * (2 if self.maxout else 1), zero_bias=True
        )

    def forward(self, s: Tensor, y: Tensor, c: Tensor) -> Tensor:
        """Returns [..., output_dim]."""
        sums = self.sums(torch.cat([s, y, c], dim=-1))
        return sums.unflatten(-1, (-1, 2)).amax(-1) if self.maxout else torch.tanh(sums)

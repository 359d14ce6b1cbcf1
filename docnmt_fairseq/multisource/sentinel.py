"""The sentinel: the decoder's own state as something to attend to, so that it can look away from all sources."""

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.initialisation import projection


class Sentinel(nn.Module):
    """ψ_i ⊙ s_i, ψ_i = σ(W_y y_i + W_s s_{i−1} + b) ([L] eq. 4-5, after Lu et al. 2016).

    Args:
        evidence_dim: d_e, width of [y_i; s_{i−1}].
        query_dim: d_q, width of s_i.
    """

    def __init__(self, evidence_dim: int, query_dim: int):
        super().__init__()
        self.gate = projection(evidence_dim, query_dim, zero_bias=True)  # [W_y W_s], b

    def forward(self, x: Tensor, evidence: Tensor) -> Tensor:
        """[S, b, d_q] from s_i [S, b, d_q] and evidence [S, b, d_e]."""
        return torch.sigmoid(self.gate(evidence)) * x

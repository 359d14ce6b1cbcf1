"""The gate between what a token is in its sentence and what its context says."""

from typing import Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.capture import ContextShare, observer
from docnmt_fairseq.layers.initialisation import projection


class ContextGate(nn.Module):
    """H = g ⊙ H^source + (1 − g) ⊙ H^context, g = σ(W_g [H^source; H^context] + b_g) ([M] eq. 16-17).

    It is also the gate of Voita et al. (2018), sec. 3, and of Miculicich et al. (2018), sec. 2.

    No finite W_g, b_g make g exactly 1, so no initialisation of the formula is the identity. ``zero_init`` therefore
    puts a learned scalar s in front of the context's share, H = H^source + s (1 − g) ⊙ (H^context − H^source), which
    starts at 0: the sentence-level model exactly. Where s = 1 it is the formula.

    Args:
        embed_dim: d.
        zero_init: begin as the identity, with the scalar; else the formula as it is.
    """

    def __init__(self, embed_dim: int, zero_init: bool = False):
        super().__init__()
        self.gate = projection(2 * embed_dim, embed_dim, zero_bias=True)  # W_g, b_g
        self.scale = nn.Parameter(torch.zeros(1)) if zero_init else None  # s

    def forward(self, source: Tensor, context: Tensor, has_context: Optional[Tensor] = None) -> Tensor:
        """The mixture, [N, d].

        Args:
            source: H^source, [N, d].
            context: H^context, [N, d].
            has_context: [N] True where a token has context; the others stay as they are. None: all have.
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

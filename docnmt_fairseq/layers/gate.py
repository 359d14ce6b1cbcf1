"""Gate between the states of tokens and their context."""

from typing import Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.capture import ContextShare, observer


class ContextGate(nn.Module):
    """H = g ⊙ H^source + (1 − g) ⊙ H^context, g = σ(W_g [H^source; H^context] + b_g) ([M] eq. 16-17).

    The same gate is used by Voita et al. (2018), sec. 3, and Miculicich et al. (2018), sec. 2.

    No finite W_g, b_g make g exactly 1, so the formula cannot be initialised as the identity. ``zero_init`` multiplies
    the share of the context by a learned scalar s, H = H^source + s (1 − g) ⊙ (H^context − H^source), which starts at
    0: exactly the sentence-level model. With s = 1 it is the formula.

    Args:
        embed_dim: d.
        zero_init: start as the identity, with the scalar.
    """

    def __init__(self, embed_dim: int, zero_init: bool = False):
        super().__init__()
        self.gate = projection(2 * embed_dim, embed_dim, zero_bias=True)  # W_g, b_g
        self.scale = nn.Parameter(torch.zeros(1)) if zero_init else None  # s

    def forward(self, source: Tensor, context: Tensor, has_context: Optional[Tensor] = None) -> Tensor:
        """Gated sum [N, d].

        Args:
            source: H^source, [N, d].
            context: H^context, [N, d].
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

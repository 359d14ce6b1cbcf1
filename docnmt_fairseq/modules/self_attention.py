"""Multi-head self-attention sentence by sentence over packed words: the stock encoder's, without padding."""

from torch import Tensor, nn

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.ragged_attention import ragged_attention


class SentenceSelfAttention(nn.Module):
    """Every word attends to the words of its own sentence. Parameters are named as fairseq's multi-head attention's.

    Args:
        embed_dim: d.
        heads: H, a divisor of d.
        dropout: of attention weights.
    """

    def __init__(self, embed_dim: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.q_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.k_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.v_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.out_proj = projection(embed_dim, embed_dim, zero_bias=True)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d] from packed word states x [N, d]."""
        q, k, v = (proj(x).unflatten(-1, (self.heads, -1)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        dropout = self.dropout if self.training else 0.0
        return self.out_proj(ragged_attention(q, k, v, layout.within_sentences, dropout).flatten(1))

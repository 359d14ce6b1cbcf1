"""The feed-forward sub-layer of a mechanism that has one of its own."""

from torch import Tensor, nn

from docnmt_fairseq.modules.context import ContextConfig
from docnmt_fairseq.modules.initialisation import projection


class FeedForward(nn.Module):
    """LayerNorm(x + W_2 f(W_1 x + b_1) + b_2): the position-wise sub-layer of Vaswani et al. (2017), sec. 3.3."""

    def __init__(self, config: ContextConfig):
        super().__init__()
        self.activation = config.activation
        self.fc1 = projection(config.embed_dim, config.ffn_dim, zero_bias=True)
        self.fc2 = projection(config.ffn_dim, config.embed_dim, zero_bias=True)
        self.activation_dropout = nn.Dropout(config.activation_dropout)
        self.dropout = nn.Dropout(config.residual_dropout)
        self.layer_norm = nn.LayerNorm(config.embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Returns [N, d] from x [N, d]."""
        hidden = self.activation_dropout(self.activation(self.fc1(x)))
        return self.layer_norm(x + self.dropout(self.fc2(hidden)))

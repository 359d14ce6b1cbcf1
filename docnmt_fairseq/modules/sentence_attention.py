"""Context mechanism ``sentence``: words attend to the sentence encodings of their document ([T] sec. 2, fig. 1)."""

from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig, ContextMechanism
from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.ragged_attention import ragged_attention
from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS


@CONTEXT_MECHANISMS.register("sentence")
class SentenceEncodingAttention(ContextMechanism):
    """Multi-head attention; queries are words, keys and values the encodings of all sentences, the own included."""

    placements = ("block", "heads")

    def __init__(self, config: ContextConfig):
        super().__init__()
        width = config.heads * config.head_dim
        self.heads = config.heads
        self.dropout = config.dropout
        encoder_heads = config.embed_dim // config.head_dim
        self.sentence_encoder = SENTENCE_ENCODERS[config.sentence_encoder](config.embed_dim, encoder_heads)
        self.q_proj = projection(config.embed_dim, width, gain=2**-0.5)
        self.k_proj = projection(config.embed_dim, width, gain=2**-0.5)
        self.v_proj = projection(config.embed_dim, width, gain=2**-0.5)
        self.out_proj = projection(width, config.embed_dim, zero_bias=True, zero=config.zero_init)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        encodings = self.sentence_encoder(x, layout.words)  # [R, d]
        q = self.q_proj(x).unflatten(-1, (self.heads, -1))
        k = self.k_proj(encodings).unflatten(-1, (self.heads, -1))
        v = self.v_proj(encodings).unflatten(-1, (self.heads, -1))
        dropout = self.dropout if self.training else 0.0
        return self.out_proj(ragged_attention(q, k, v, layout.to_sentences, dropout).flatten(1))

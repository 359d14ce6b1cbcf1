"""Context mechanism ``sentence``: words attend to the sentence encodings of their document ([T] sec. 2, fig. 1)."""

from typing import Union

import torch
from torch import Tensor

from docnmt_fairseq.layout import AttentionPlan, DocumentLayout
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig, DecoderContextMechanism
from docnmt_fairseq.modules.initialisation import projection
from docnmt_fairseq.modules.masked_attention import masked_attention
from docnmt_fairseq.modules.ragged_attention import ragged_attention
from docnmt_fairseq.modules.recording import SENTENCES, Weights, observer, weights_of_plan
from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS


@CONTEXT_MECHANISMS.register("sentence")
class SentenceEncodingAttention(DecoderContextMechanism):
    """Multi-head attention; queries are words, keys and values the encodings of all sentences, the own included.

    The words are those of the encoder's layer itself or, in the decoder, target words; the memory of a sentence is
    its key and value, [2 · H · d_k].
    """

    placements = ("block", "heads")

    def __init__(self, config: ContextConfig):
        super().__init__()
        width = config.heads * config.head_dim
        source_dim = config.source_dim or config.embed_dim
        source_heads = config.source_heads or config.embed_dim // config.head_dim
        self.heads = config.heads
        self.dropout = config.dropout
        self.sentence_encoder = SENTENCE_ENCODERS[config.sentence_encoder](source_dim, source_heads)
        self.q_proj = projection(config.embed_dim, width, gain=2**-0.5)
        self.k_proj = projection(source_dim, width, gain=2**-0.5)
        self.v_proj = projection(source_dim, width, gain=2**-0.5)
        self.out_proj = projection(width, config.embed_dim, zero_bias=True, zero=config.zero_init)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        return self.attend(x, self.remember(x, layout), layout.to_sentences)

    def remember(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns keys and values [R, 2 · H · d_k]; see :class:`DecoderContextMechanism`."""
        encodings = self.sentence_encoder(states, layout.words)  # [R, d_source]
        return torch.cat([self.k_proj(encodings), self.v_proj(encodings)], dim=1)

    def attend(self, x: Tensor, memory: Tensor, sight: Union[AttentionPlan, Tensor]) -> Tensor:
        """Returns [M, d]; see :class:`DecoderContextMechanism`."""
        q = self.q_proj(x).unflatten(-1, (self.heads, -1))
        k, v = memory.unflatten(-1, (2, self.heads, -1)).unbind(1)  # [R, H, d_k]
        observe = observer(self)
        if observe is not None and isinstance(sight, AttentionPlan):  # a search sees parts of sentences only
            observe(Weights("attention", SENTENCES, weights_of_plan(q, k, sight).detach()))
        attention = ragged_attention if isinstance(sight, AttentionPlan) else masked_attention
        return self.out_proj(attention(q, k, v, sight, self.dropout if self.training else 0.0).flatten(1))

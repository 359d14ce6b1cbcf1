"""Context mechanism ``sentence-encodings``: attention to the sentence encodings of the document ([T] sec. 2)."""

from typing import Any, Iterator

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey, ToSentences
from docnmt_fairseq.batch.ragged import AttentionPlan
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DecoderContextMechanism, LayerConfig
from docnmt_fairseq.layers.attention import masked_attention, ragged_attention
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.capture import SENTENCES, Weights, observer, weights_of_plan
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoderOptions


@CONTEXT_MECHANISMS.register("sentence-encodings")
class SentenceEncodingAttention(DecoderContextMechanism):
    """Multi-head attention of tokens to the encodings of all sentences, the own one included.

    The tokens are those of the encoder's layer itself or, in the decoder, target tokens; what is computed once of a
    sentence is its key and value, [2 · H · d_k].
    """

    Options = SentenceEncoderOptions
    placements = ("block", "heads")

    def __init__(self, layer: LayerConfig, options: SentenceEncoderOptions):
        super().__init__()
        width = layer.heads * layer.head_dim
        source_dim = layer.source_dim or layer.embed_dim
        source_heads = layer.source_heads or layer.embed_dim // layer.head_dim
        self.heads = layer.heads
        self.dropout = layer.dropout
        self.sentence_encoder = SENTENCE_ENCODERS[options.sentence_encoder](source_dim, source_heads)
        self.q_proj = projection(layer.embed_dim, width, gain=2**-0.5)
        self.k_proj = projection(source_dim, width, gain=2**-0.5)
        self.v_proj = projection(source_dim, width, gain=2**-0.5)
        self.out_proj = projection(width, layer.embed_dim, zero_bias=True, zero=layer.zero_init)

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        return self.attend(x, self.project(x, layout), layout.plan(ToSentences()))

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield ToSentences()

    def project(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        """Keys and values [R, 2 · H · d_k]; see :class:`DecoderContextMechanism`."""
        encodings = self.sentence_encoder(states, layout.tokens)  # [R, d_source]
        return torch.cat([self.k_proj(encodings), self.v_proj(encodings)], dim=1)

    def attend(self, x: Tensor, projected: Tensor, plan: AttentionPlan) -> Tensor:
        q = self.q_proj(x).unflatten(-1, (self.heads, -1))
        k, v = projected.unflatten(-1, (2, self.heads, -1)).unbind(1)  # [R, H, d_k]
        observe = observer(self)
        if observe is not None:
            observe(Weights("attention", SENTENCES, weights_of_plan(q, k, plan).detach()))
        return self.out_proj(ragged_attention(q, k, v, plan, self.dropout if self.training else 0.0).flatten(1))

    def attend_masked(self, x: Tensor, projected: Tensor, mask: Tensor) -> Tensor:
        q = self.q_proj(x).unflatten(-1, (self.heads, -1))
        k, v = projected.unflatten(-1, (2, self.heads, -1)).unbind(1)
        return self.out_proj(masked_attention(q, k, v, mask, self.dropout if self.training else 0.0).flatten(1))

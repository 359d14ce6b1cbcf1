"""Context mechanism ``context-aware``: attention to encoded context sentences (Voita et al. 2018)."""

from typing import Any, Iterator

from torch import Tensor, nn

from docnmt_fairseq.batch.context_sentences import ToContextTokens
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.selected.base import SelectedContext, SelectedOptions
from docnmt_fairseq.layers.attention import MultiHeadAttention, SentenceSelfAttention
from docnmt_fairseq.layers.capture import TOKENS, weights_observer
from docnmt_fairseq.layers.feed_forward import FeedForwardSubLayer


class ContextLayer(SentenceSelfAttention):
    """Encoder layer over context sentences: LayerNorm(x + MultiHead(x, x, x)), then the feed-forward sub-layer."""

    def __init__(self, layer: LayerConfig):
        super().__init__(layer.embed_dim, layer.heads, layer.dropout)
        self.residual_dropout = nn.Dropout(layer.residual_dropout)
        self.layer_norm = nn.LayerNorm(layer.embed_dim)
        self.feed_forward = FeedForwardSubLayer(layer)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d] from packed token states x [N, d]."""
        return self.feed_forward(self.layer_norm(x + self.residual_dropout(super().forward(x, layout))))


@CONTEXT_MECHANISMS.register("context-aware")
class ContextAwareAttention(SelectedContext):
    """c^{c-attn} of Voita et al. (2018), sec. 3: multi-head attention of the tokens to the context encoder's output.

    The context encoder shares all layers below this one with the source encoder, and has its own last layer here. A
    sentence is encoded by the shared layers once, as source and as context; therefore the special token that the text
    puts before context sentences is omitted. Several context sentences are one set of tokens.
    """

    placements = ("gated-attention",)

    def __init__(self, layer: LayerConfig, options: SelectedOptions):
        super().__init__(layer, options)
        self.context_layer = ContextLayer(layer)
        self.attention = MultiHeadAttention(layer.embed_dim, layer.heads, layer.dropout)

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        """See :class:`ContextMechanism`."""
        if not len(self.select(layout).sentences):
            return self.nothing(x)
        gathered = layout.plan(ToContextTokens(self.context_sentences))
        observe = weights_observer(self, "attention", TOKENS)
        attended = self.attention.attend(x, self.context_layer(x, layout), gathered.plan, gathered.gather, observe)
        return gathered.scatter(attended, len(x))

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`ContextMechanism`."""
        yield from super().plans()
        yield ToContextTokens(self.context_sentences)

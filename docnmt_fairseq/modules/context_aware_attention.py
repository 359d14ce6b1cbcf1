"""Context mechanism ``context-aware``: attention to the context's states beside self-attention (Voita et al. 2018)."""

from torch import Tensor, nn

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig
from docnmt_fairseq.modules.context_selection import SelectedContext
from docnmt_fairseq.modules.feed_forward import FeedForward
from docnmt_fairseq.modules.multi_head import MultiHeadAttention
from docnmt_fairseq.modules.recording import WORDS, weights_observer
from docnmt_fairseq.modules.self_attention import SentenceSelfAttention


class ContextLayer(SentenceSelfAttention):
    """An encoder layer over context sentences: LayerNorm(x + MultiHead(x, x, x)), then the feed-forward sub-layer."""

    def __init__(self, config: ContextConfig):
        super().__init__(config.embed_dim, config.heads, config.dropout)
        self.residual_dropout = nn.Dropout(config.residual_dropout)
        self.layer_norm = nn.LayerNorm(config.embed_dim)
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d] from packed word states x [N, d]."""
        return self.feed_forward(self.layer_norm(x + self.residual_dropout(super().forward(x, layout))))


@CONTEXT_MECHANISMS.register("context-aware")
class ContextAwareAttention(SelectedContext):
    """c^{c-attn} of Voita et al. (2018), sec. 3: multi-head attention of the words to the context encoder's output.

    The context encoder shares all layers below this one with the source encoder; its own last layer is here. Shared
    layers see a context sentence as they see it as a source sentence, so every sentence goes through them once; the
    symbol that the text puts before context sentences, by which shared layers could tell them apart, is left out for
    that. Several context sentences are one set of words.
    """

    placements = ("gated-attention",)

    def __init__(self, config: ContextConfig):
        super().__init__(config)
        self.context_layer = ContextLayer(config)
        self.attention = MultiHeadAttention(config.embed_dim, config.heads, config.dropout)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        contexts = self.select(layout)
        if not len(contexts.sentences):
            return self.nothing(x)
        gathered = contexts.to_words
        observe = weights_observer(self, "attention", WORDS)
        attended = self.attention.attend(x, self.context_layer(x, layout), gathered.plan, gathered.gather, observe)
        return gathered.scatter(attended, len(x))

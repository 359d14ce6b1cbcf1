"""Context mechanism ``han``: attention to the words of each context sentence, then to what that gave (HAN)."""

from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig
from docnmt_fairseq.modules.context_selection import SelectedContext
from docnmt_fairseq.modules.feed_forward import FeedForward
from docnmt_fairseq.modules.multi_head import MultiHeadAttention


@CONTEXT_MECHANISMS.register("han")
class HierarchicalAttention(SelectedContext):
    """d_t of Miculicich et al. (2018), sec. 2, from the encoder's last states h.

    s^j = MultiHead(f_w(h_t), h^j) for each context sentence j, d_t = FFN(MultiHead(f_s(h_t), s)). The linear maps f_w
    and f_s go straight into the query projections, which are linear, too: one matrix stands for both.
    """

    placements = ("gated-output",)
    default_contexts = 3

    def __init__(self, config: ContextConfig):
        super().__init__(config)
        sizes = (config.embed_dim, config.heads, config.dropout)
        self.word_attention = MultiHeadAttention(*sizes)
        self.sentence_attention = MultiHeadAttention(*sizes)
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        contexts = self.select(layout)
        if not len(contexts.sentences):
            return self.nothing(x)
        words, sentences = contexts.to_each_sentence, contexts.over_sentences
        s = self.word_attention.attend(x, x, words.plan, words.gather)  # [M, d], s^j of every word and sentence
        attended = self.sentence_attention.attend(x, s, sentences.plan, sentences.gather)
        return sentences.scatter(self.feed_forward(attended), len(x))

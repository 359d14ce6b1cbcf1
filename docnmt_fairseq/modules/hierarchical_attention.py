"""Context mechanism ``han``: attention to the words of each context sentence, then to what that gave (HAN)."""

import torch
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig, TargetContextMechanism
from docnmt_fairseq.modules.context_selection import SelectedContext
from docnmt_fairseq.modules.feed_forward import FeedForward
from docnmt_fairseq.modules.multi_head import MultiHeadAttention
from docnmt_fairseq.modules.recording import SENTENCES, WORDS, weights_observer


@CONTEXT_MECHANISMS.register("han")
class HierarchicalAttention(SelectedContext, TargetContextMechanism):
    """d_t of Miculicich et al. (2018), sec. 2, from the last states h of the encoder or the decoder.

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
        observe = weights_observer(self, "attention inside each sentence", WORDS)
        # [M, d], s^j of every word and sentence
        s = self.word_attention.attend(x, x, words.plan, words.gather, observe)
        observe = weights_observer(self, "attention", SENTENCES)
        if observe is not None:
            to_sentences, rows = observe, contexts.row_of_result

            def observe(weights: Tensor) -> None:
                to_sentences(weights.new_zeros(len(x), layout.words.rows, weights.size(2)).index_add(1, rows, weights))

        attended = self.sentence_attention.attend(x, s, sentences.plan, sentences.gather, observe)
        return sentences.scatter(self.feed_forward(attended), len(x))

    def remember(self, states: Tensor) -> Tensor:
        """Returns keys and values of the word-level attention, [..., 2 · d]; see :class:`TargetContextMechanism`."""
        return torch.cat([self.word_attention.k_proj(states), self.word_attention.v_proj(states)], dim=-1)

    def look_back(self, x: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """Returns [S, b, d]; see :class:`TargetContextMechanism`."""
        of_words, of_sentences = self.word_attention, self.sentence_attention
        absent = padding.all(-1)  # [S, J]
        k, v = memory.chunk(2, dim=-1)  # [S, J, L, d]
        q = of_words.q_proj(x)[:, None].expand(-1, k.size(1), -1, -1)  # [S, J, b, d]
        s = of_words.attend_padded(q, k, v, (~padding | absent[..., None])[:, :, None]).transpose(1, 2)  # [S, b, J, d]
        seen = ~absent | absent.all(-1, keepdim=True)  # [S, J]
        q, k, v = of_sentences.q_proj(x)[:, :, None], of_sentences.k_proj(s), of_sentences.v_proj(s)
        return self.feed_forward(of_sentences.attend_padded(q, k, v, seen[:, None, None]).squeeze(2))

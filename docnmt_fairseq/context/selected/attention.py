"""Context mechanisms ``context-aware`` and ``han``: multi-head attention to context sentences."""

from typing import Any, Iterator

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.context_sentences import ToContextTokens, ToEachContextSentence
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig, TargetContextMechanism
from docnmt_fairseq.context.selected.base import SelectedContext, SelectedOptions
from docnmt_fairseq.layers.attention import MultiHeadAttention, SentenceSelfAttention
from docnmt_fairseq.layers.base import FeedForwardSubLayer
from docnmt_fairseq.layers.capture import SENTENCES, TOKENS, weights_observer
from docnmt_fairseq.layers.search_kernels import attend_hypotheses


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
        if not len(self.select(layout).sentences):
            return self.nothing(x)
        gathered = layout.plan(ToContextTokens(self.context_sentences))
        observe = weights_observer(self, "attention", TOKENS)
        attended = self.attention.attend(x, self.context_layer(x, layout), gathered.plan, gathered.gather, observe)
        return gathered.scatter(attended, len(x))

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield from super().plans()
        yield ToContextTokens(self.context_sentences)


@CONTEXT_MECHANISMS.register("han")
class HierarchicalAttention(SelectedContext, TargetContextMechanism):
    """d_t of Miculicich et al. (2018), sec. 2, from the last states h of the encoder or the decoder.

    s^j = MultiHead(f_w(h_t), h^j) for each context sentence j, d_t = FFN(MultiHead(f_s(h_t), s)). The linear maps f_w
    and f_s are merged into the query projections, which are linear, too.
    """

    placements = ("gated-output",)
    default_contexts = 3

    def __init__(self, layer: LayerConfig, options: SelectedOptions):
        super().__init__(layer, options)
        sizes = (layer.embed_dim, layer.heads, layer.dropout)
        self.word_attention = MultiHeadAttention(*sizes)
        self.sentence_attention = MultiHeadAttention(*sizes)
        self.feed_forward = FeedForwardSubLayer(layer)

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        if not len(self.select(layout).sentences):
            return self.nothing(x)
        plan = layout.plan(ToEachContextSentence(self.context_sentences))
        observe = weights_observer(self, "attention inside each sentence", TOKENS)
        # [M, d], s^j of every token and sentence
        s = self.word_attention.attend(x, x, plan.each.plan, plan.each.gather, observe)
        observe = weights_observer(self, "attention", SENTENCES)

        def observe_sentences(weights: Tensor) -> None:
            if observe is not None:
                of_sentences = weights.new_zeros(len(x), layout.tokens.rows, weights.size(2))
                observe(of_sentences.index_add(1, plan.sentence, weights))

        of_results = None if observe is None else observe_sentences
        attended = self.sentence_attention.attend(x, s, plan.over.plan, plan.over.gather, of_results)
        return plan.over.scatter(self.feed_forward(attended), len(x))

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield from super().plans()
        yield ToEachContextSentence(self.context_sentences)

    def project_targets(self, states: Tensor) -> Tensor:
        """Returns keys and values of the word-level attention, [..., 2 · d]; see :class:`TargetContextMechanism`."""
        return torch.cat([self.word_attention.k_proj(states), self.word_attention.v_proj(states)], dim=-1)

    def look_back(self, x: Tensor, projected: Tensor, padding: Tensor) -> Tensor:
        words, sentences = self.word_attention, self.sentence_attention
        absent = padding.all(-1)  # [S, J]
        k, v = (words.split_heads(side.flatten(0, 1)).transpose(1, 2) for side in projected.chunk(2, dim=-1))
        q = words.split_heads(words.q_proj(x)[:, None].expand(-1, absent.size(1), -1, -1).flatten(0, 1))
        seen = (~padding | absent[..., None]).flatten(0, 1)[:, None]  # [S · J, 1, L]; any token of absent sentences
        s = words.out_proj(attend_hypotheses(q, k, v, seen)).unflatten(0, absent.shape)  # [S, J, b, d]
        # J is small: sums are faster than matrix products.
        inputs = ((sentences.q_proj, x[:, None]), (sentences.k_proj, s), (sentences.v_proj, s))
        q, k, v = (sentences.split_heads(proj(states)) for proj, states in inputs)  # [S, 1 or J, b, H, d/H]
        masked = absent & ~absent.all(-1, keepdim=True)
        scores = (q * k).sum(-1) / k.size(-1) ** 0.5  # [S, J, b, H]
        shares = scores.masked_fill(masked[..., None, None], -torch.inf).softmax(1)
        return self.feed_forward(sentences.out_proj((shares[..., None] * v).sum(1).flatten(2)))

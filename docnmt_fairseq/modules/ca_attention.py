"""Context mechanism ``ca-att``: attention without a softmax, which may leave all context alone ([Z] sec. 3.3)."""

from typing import Tuple, Union

import torch
from torch import Tensor

from docnmt_fairseq.layout import AttentionPlan, DocumentLayout
from docnmt_fairseq.modules.attention_combination.contract import CombinationConfig
from docnmt_fairseq.modules.attention_combination.packed import CombinationPlan
from docnmt_fairseq.modules.attention_combination.separate import Parallel
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig, DecoderContextMechanism
from docnmt_fairseq.modules.context_selection import SelectedContext
from docnmt_fairseq.modules.recording import SENTENCES, WORDS, joined, scatter, weights_observer
from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS


@CONTEXT_MECHANISMS.register("ca-att")
class CAAttention(SelectedContext, DecoderContextMechanism):
    """W s + b, s = v(c) Σ_i χ(s_i, c) + Σ_i (1 − χ(s_i, c)) s_i ([Z] eq. 23-26), c a word, s_i its context.

    In the encoder s_i are the words of the selected context sentences together; in the decoder they are the encodings
    of all sentences of the source document. The projection W, b is added, so that the sum, which grows with the number
    of s_i, can enter the states of words at a scale that is learned, from zero where a sub-layer begins as the
    identity.
    """

    placements = ("gated-attention", "block")

    def __init__(self, config: ContextConfig):
        super().__init__(config)
        width = config.source_dim or config.embed_dim
        of_source = (config.embed_dim, (width,), config.embed_dim)
        self.attention = Parallel(CombinationConfig(*of_source, attention="ca-att", dropout=config.dropout))
        if config.zero_init:
            for parameter in self.attention.attentions[0].project.parameters():
                parameter.data.zero_()
        if config.source_dim is not None:  # in the decoder
            self.sentence_encoder = SENTENCE_ENCODERS[config.sentence_encoder](width, config.source_heads)

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        contexts = self.select(layout)
        if not len(contexts.sentences):
            return self.nothing(x)
        gathered = contexts.to_words
        q, memory = x[gathered.queries], self.attention.remember([x])[0][gathered.keys]
        observe = weights_observer(self, "attention", WORDS)
        if observe is not None:
            observe(self.weights(q, memory, gathered.plan, gathered.gather, (len(x), len(x))))
        with joined(lambda chi: chi.new_full((len(x),), torch.nan).index_copy(0, gathered.queries, chi)):
            return gathered.scatter(self.over(q, memory, gathered.plan), len(x))

    def remember(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns what is read of sentences [R, 1 + d_source]; see :class:`DecoderContextMechanism`."""
        return self.attention.remember([self.sentence_encoder(states, layout.words)])[0]

    def attend(self, x: Tensor, memory: Tensor, sight: Union[AttentionPlan, Tensor]) -> Tensor:
        """Returns [M, d]; see :class:`DecoderContextMechanism`."""
        if not isinstance(sight, AttentionPlan):
            return self.attention(x[None], [memory[None]], [~sight[None]])[0].squeeze(0)
        observe = weights_observer(self, "attention", SENTENCES)
        if observe is not None:
            everyone = tuple(torch.arange(len(side), device=x.device) for side in (x, memory))
            observe(self.weights(x, memory, sight, everyone, (len(x), len(memory))))
        return self.over(x, memory, sight)

    def over(self, x: Tensor, memory: Tensor, plan: AttentionPlan) -> Tensor:
        """Returns what queries x [N_q, d] get of memory [N_k, w]: [queries of the plan, d]."""
        return CombinationPlan.of_attention(plan).combine(self.attention, x, [memory])[0]

    def weights(
        self, x: Tensor, memory: Tensor, plan: AttentionPlan, numbers: Tuple[Tensor, Tensor], states: Tuple[int, int]
    ) -> Tensor:
        """Returns how the words' attention, the 1 − χ of all they see, divides over it: [M, K, 1].

        Args:
            x, memory: queries [N_q, d] and keys [N_k, w] of the plan.
            plan: which queries see which keys.
            numbers: the states that they are, [N_q] and [N_k].
            states: M and K.
        """
        into = x.new_zeros(*states, 1)
        groups = zip(plan.blocks, plan.queries.paddings, CombinationPlan.of_attention(plan).gather([memory]))
        for block, padding, ((keys,), (hidden,)) in groups:
            _, parts = self.attention.attentions[0].parts(x[block.query], keys, hidden)  # [b, 1, m, k]
            shares = (parts / parts.sum(-1, keepdim=True).clamp_min(torch.finfo(parts.dtype).tiny)).squeeze(1)
            shares = shares if padding is None else shares.masked_fill(padding[:, :, None], 0)
            scatter(shares[..., None], numbers[0][block.query], numbers[1][block.key], into)
        return into

"""Context mechanism ``ca-att``: attention without softmax, which can ignore all context ([Z] sec. 3.3)."""

from dataclasses import dataclass, replace
from typing import Any, Iterator, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.batch.context_sentences import ToContextTokens
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionPlan
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DecoderContextMechanism, LayerConfig
from docnmt_fairseq.context.selected.base import SelectedContext, SelectedOptions
from docnmt_fairseq.layers.capture import SENTENCES, TOKENS, joined, scatter, weights_observer
from docnmt_fairseq.layers.precision import gather_rows
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoderOptions
from docnmt_fairseq.multisource.base import CombinationConfig
from docnmt_fairseq.multisource.combinations import Parallel
from docnmt_fairseq.multisource.packed import CombinationPlan


@CONTEXT_MECHANISMS.register("ca-att")
class CAAttention(SelectedContext, DecoderContextMechanism):
    """W s + b, s = v(c) Σ_i χ(s_i, c) + Σ_i (1 − χ(s_i, c)) s_i ([Z] eq. 23-26), c a token, s_i its context.

    In the encoder s_i are the tokens of all selected context sentences; in the decoder they are the encodings of all
    sentences of the source document. The projection W, b is an addition: the sum grows with the number of s_i, and the
    projection learns its scale, from zero if the sub-layer is initialised as the identity.
    """

    @dataclass(frozen=True)
    class Options(SelectedOptions, SentenceEncoderOptions):
        """Options of context sentences and, in the decoder, of their encoder."""

    placements = ("gated-attention", "block")

    def __init__(self, layer: LayerConfig, options: "CAAttention.Options"):
        self.of_targets = layer.source_dim is not None
        super().__init__(layer, replace(options, context_selection="previous") if self.of_targets else options)
        width = layer.source_dim or layer.embed_dim
        of_source = (layer.embed_dim, (width,), layer.embed_dim)
        self.attention = Parallel(CombinationConfig(*of_source, combination_attention="ca-att", dropout=layer.dropout))
        if layer.zero_init:
            for parameter in self.attention.attentions[0].project.parameters():
                parameter.data.zero_()
        if layer.source_dim is not None:
            heads = layer.source_heads or layer.source_dim // layer.head_dim
            self.sentence_encoder = SENTENCE_ENCODERS[options.sentence_encoder](width, heads)

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        if not len(self.select(layout).sentences):
            return self.nothing(x)
        gathered = layout.plan(ToContextTokens(self.context_sentences))
        q = gather_rows(x, gathered.queries)
        projected = gather_rows(self.attention.project_sources([x])[0], gathered.keys)
        observe = weights_observer(self, "attention", TOKENS)
        if observe is not None:
            observe(self.weights(q, projected, gathered.plan, gathered.gather, (len(x), len(x))))
        with joined(lambda chi: chi.new_full((len(x),), torch.nan).index_copy(0, gathered.queries, chi)):
            return gathered.scatter(self.combine(q, projected, gathered.plan), len(x))

    def plans(self) -> Iterator[PlanKey[Any]]:
        if not self.of_targets:
            yield from super().plans()
            yield ToContextTokens(self.context_sentences)

    def project(self, states: Tensor, layout: DocumentLayout) -> Tensor:
        return self.attention.project_sources([self.sentence_encoder(states, layout.tokens)])[0]

    def attend(self, x: Tensor, projected: Tensor, plan: AttentionPlan) -> Tensor:
        observe = weights_observer(self, "attention", SENTENCES)
        if observe is not None:
            tokens, sentences = (torch.arange(len(side), device=x.device) for side in (x, projected))
            observe(self.weights(x, projected, plan, (tokens, sentences), (len(x), len(projected))))
        return self.combine(x, projected, plan)

    def attend_masked(self, x: Tensor, projected: Tensor, mask: Tensor) -> Tensor:
        return self.attention(x[None], [projected[None]], [~mask[None]])[0].squeeze(0)

    def combine(self, x: Tensor, projected: Tensor, plan: AttentionPlan) -> Tensor:
        """Returns the combination [queries of the plan, d] of projected states [N_k, w] for queries x [N_q, d]."""
        return CombinationPlan.of_attention(plan).combine(self.attention, x, [projected])[0]

    def weights(
        self, x: Tensor, projected: Tensor, plan: AttentionPlan, numbers: Tuple[Tensor, Tensor], states: Tuple[int, int]
    ) -> Tensor:
        """Returns attention weights [M, K, 1]: 1 − χ of all states that a token sees, normalised.

        Args:
            x, projected: queries [N_q, d] and keys [N_k, w] of the plan.
            plan: which queries attend to which keys.
            numbers: indices of their states, [N_q] and [N_k].
            states: M and K.
        """
        into = x.new_zeros(*states, 1)
        groups = zip(plan.blocks, plan.queries.paddings, CombinationPlan.of_attention(plan).gather([projected]))
        for block, padding, ((keys,), (hidden,)) in groups:
            _, parts = self.attention.attentions[0].parts(x[block.query], keys, hidden)  # [b, 1, m, k]
            shares = (parts / parts.sum(-1, keepdim=True).clamp_min(torch.finfo(parts.dtype).tiny)).squeeze(1)
            shares = shares if padding is None else shares.masked_fill(padding[:, :, None], 0)
            scatter(shares[..., None], numbers[0][block.query], numbers[1][block.key], into)
        return into

"""Arrangements of target tokens in the decoder: packed in training, rows of hypotheses during decoding."""

from dataclasses import dataclass
from typing import Optional, Protocol, Tuple

from torch import Tensor

from docnmt_fairseq.batch.layout import TargetsToSentences, WithinTargets
from docnmt_fairseq.context.base import DecoderContextMechanism
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.transformer.attention import IncrementalState, SourceAttention, TargetSelfAttention


class DecoderInput(Protocol):
    """Contract: computes the attentions of a decoder layer for target tokens x in one arrangement."""

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """Attention of x to the previous target tokens, of the shape of x."""

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """Attention of x to the sources, of the shape of x, and its weights if wanted and available."""

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        """Context of x from the source document, of the shape of x."""


@dataclass(frozen=True)
class PackedDecoderInput:
    """Teacher forcing: all target tokens of a batch, [N_t, d] without padding."""

    sources: EncoderOutputs

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        return attention.attend(x, x, self.sources.layout.plan(WithinTargets()))

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`DecoderInput`; without weights."""
        return attention.attend_packed(x, self.sources), None

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        layout = self.sources.layout
        projected = mechanism.project(self.sources.states, layout)
        return mechanism.attend(x, projected, layout.plan(TargetsToSentences()))


@dataclass(frozen=True)
class PaddedDecoderInput:
    """Decoding: rows [B, m, d], the same number for each remaining sentence, optionally with an incremental state."""

    sources: EncoderOutputs
    incremental_state: Optional[IncrementalState] = None

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        return attention.attend_rows(x, self.incremental_state)

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`DecoderInput`; weights are [H, B, m, n]."""
        by_sentence = x.reshape(self.sources.left, -1, x.size(-1))  # [S', b · m, d]
        keys = self.sources.per_sentence(attention, lambda: attention.project_sources(self.sources))
        y, shares = attention.attend_hypotheses(by_sentence, keys, weights)
        if shares is not None:
            shares = shares.transpose(0, 1).unflatten(2, (-1, x.size(1))).flatten(1, 2)
        return y.view_as(x), shares

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        sources, layout = self.sources, self.sources.layout
        projected = sources.per_batch(mechanism, lambda: mechanism.project(sources.states, layout))
        mask = sources.row_document()[:, None] == layout.sentences.item_row  # [B, R]
        y = mechanism.attend_masked(x.flatten(0, 1), projected, mask.repeat_interleave(x.size(1), 0))
        return y.view_as(x)

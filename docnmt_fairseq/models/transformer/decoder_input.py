"""How target tokens are arranged, and what they look at: packed in training, rows of hypotheses in a search."""

from dataclasses import dataclass
from typing import Optional, Protocol, Tuple

from torch import Tensor

from docnmt_fairseq.batch.attention_plans import TargetsToSentences, WithinTargets
from docnmt_fairseq.context.base import DecoderContextMechanism
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.transformer.attention import IncrementalState, SourceAttention, TargetSelfAttention


class DecoderInput(Protocol):
    """What a decoder layer asks of the target tokens x that it computes."""

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """What x find in the target tokens before them, of the shape of x."""

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """What x find in the sources, of the shape of x, and their weights where these are wanted and had."""

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        """What x find in the source document, of the shape of x."""


@dataclass(frozen=True)
class PackedDecoderInput:
    """Teacher forcing: all target tokens of a batch, [N_t, d] without padding."""

    sources: EncoderOutputs

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        return attention.attend(x, x, self.sources.layout.plan(WithinTargets()))

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`DecoderInput`; no weights."""
        return attention.of_packed_targets(x, self.sources), None

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        layout = self.sources.layout
        projected = mechanism.project(self.sources.states, layout)
        return mechanism.attend(x, projected, layout.plan(TargetsToSentences()))


@dataclass(frozen=True)
class PaddedDecoderInput:
    """A search: rows [B, m, d], as many of each sentence that is left; step by step with what the search keeps."""

    sources: EncoderOutputs
    incremental_state: Optional[IncrementalState] = None

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        """See :class:`DecoderInput`."""
        return attention.of_rows(x, self.incremental_state)

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`DecoderInput`; weights are [H, B, m, n]."""
        of_sentences = x.reshape(self.sources.left, -1, x.size(-1))  # [S', b · m, d]
        parts = self.sources.per_sentence(attention, lambda: attention.of_sources(self.sources))
        y, shares = attention.of_hypotheses(of_sentences, parts, weights)
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

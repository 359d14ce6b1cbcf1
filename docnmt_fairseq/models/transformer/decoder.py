"""Transformer decoder: over packed target tokens in training and validation, over hypotheses during decoding."""

import itertools
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.modules import LayerNorm
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, OfTargets, PlanKey, TargetsToSentences, WithinTargets
from docnmt_fairseq.context.base import DecoderContextMechanism, TargetContextMechanism
from docnmt_fairseq.layers.auxiliary_losses import recomputed
from docnmt_fairseq.layers.base import ContextGate
from docnmt_fairseq.layers.positions import FAIRSEQ, sinusoid
from docnmt_fairseq.models.encoder_outputs import EncoderOut, EncoderOutputs, PreviousTargets
from docnmt_fairseq.models.transformer.attention import IncrementalState, SourceAttention, TargetSelfAttention
from docnmt_fairseq.models.transformer.config import (
    EOS,
    NONE,
    PAD,
    DocumentTransformerOptions,
    decoder_context_layers,
)
from docnmt_fairseq.models.transformer.decoder_input import DecoderInput, PackedDecoderInput, PaddedDecoderInput
from docnmt_fairseq.models.transformer.parts import (
    decoder_context_mechanism,
    feed_forward,
    layer_config,
    starts_at_identity,
    target_context_mechanism,
)


class DocumentDecoderLayer(nn.Module):
    """Self-attention, attention to the sources, feed-forward, and optionally context from the source document.

    Args:
        cfg: options of the model.
        source_attention: builds the attention to the sources.
        context: context mechanism; None: a sentence-level layer.
    """

    def __init__(
        self,
        cfg: DocumentTransformerOptions,
        source_attention: Callable[[], SourceAttention],
        context: Optional[DecoderContextMechanism] = None,
    ):
        super().__init__()
        layer = layer_config(cfg, "decoder")
        self.normalize_before = cfg.decoder_normalize_before
        self.dropout_module = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        self.self_attn = TargetSelfAttention(layer.embed_dim, layer.heads, layer.dropout)
        self.self_attn_layer_norm = LayerNorm(layer.embed_dim)
        self.encoder_attn = source_attention()
        self.encoder_attn_layer_norm = LayerNorm(layer.embed_dim)
        self.feed_forward = feed_forward(cfg, "decoder")
        self.final_layer_norm = LayerNorm(layer.embed_dim)
        self.context = context
        if context is not None:
            self.context_layer_norm = nn.LayerNorm(layer.embed_dim)

    def forward(self, x: Tensor, targets: DecoderInput, weights: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        """States of the shape of x, and the weights of source tokens if wanted and available.

        Args:
            x: [N_t, d] or [B, m, d], as arranged by ``targets``.
            targets: computes the attentions.
            weights: return weights.
        """
        x = self.sub_layer(x, self.self_attn_layer_norm, lambda y: targets.self_attention(self.self_attn, y))
        seen: List[Optional[Tensor]] = []

        def attend_to_sources(y: Tensor) -> Tensor:
            output, shares = targets.source_attention(self.encoder_attn, y, weights)
            seen.append(shares)
            return output

        x = self.sub_layer(x, self.encoder_attn_layer_norm, attend_to_sources)
        x = self.sub_layer(x, self.final_layer_norm, self.feed_forward)
        if self.context is not None:
            # Pre-norm in post-norm models, too, so that the sub-layer can start as the identity.
            x = x + self.dropout_module(targets.context(self.context, self.context_layer_norm(x)))
        return x, seen[0]

    def sub_layer(self, x: Tensor, norm: nn.Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        """x + dropout(function(x)), with pre-norm or post-norm."""
        x = x + self.dropout_module(function(norm(x) if self.normalize_before else x))
        return x if self.normalize_before else norm(x)


class TargetSinusoids(nn.Module):
    """Sinusoids of target tokens from position 0, with the interface of fairseq's positions.

    Args:
        embed_dim: d.
        formula: a name in :data:`~docnmt_fairseq.layers.positions.SINUSOIDS`.
    """

    max_positions = 100_000  # the same as fairseq's

    def __init__(self, embed_dim: int, formula: str):
        super().__init__()
        self.embed_dim, self.formula = embed_dim, formula

    def forward(self, tokens: Tensor, incremental_state: Optional[IncrementalState] = None, **unused: object) -> Tensor:
        """Embeddings [B, m, d] of right-padded tokens [B, m]; during decoding those of the last token, [B, 1, d]."""
        positions = torch.arange(tokens.size(1), device=tokens.device)
        positions = positions if incremental_state is None else positions[-1:]
        return sinusoid(positions, self.embed_dim, formula=self.formula).expand(len(tokens), -1, -1)


class TargetContext(nn.Module):
    """A :class:`TargetContextMechanism` over the decoder's final states, and the gate between both.

    The mechanism attends to states before the gate, which do not depend on previous sentences, so that in training all
    sentences of a document are computed at once.
    """

    mechanism: TargetContextMechanism

    def __init__(self, cfg: DocumentTransformerOptions):
        super().__init__()
        self.mechanism = target_context_mechanism(cfg)
        self.gate = ContextGate(cfg.decoder_embed_dim, starts_at_identity(cfg))

    @property
    def targets(self) -> OfTargets:
        """Key of the layout of the targets, with the plans that the mechanism uses."""
        return OfTargets(tuple(self.mechanism.plans()))

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Packed states [N_t, d] from x [N_t, d], the target tokens of a batch."""
        targets = layout.plan(self.targets)
        return self.gate(x, self.mechanism(x, targets), self.mechanism.has_context(targets))

    def look_back(self, x: Tensor, previous: PreviousTargets) -> Tensor:
        """States [B, m, d] from x [B, m, d] of hypotheses, the same number for each sentence.

        Args:
            x: see above.
            previous: previous translations of these sentences.
        """
        by_sentence = x.reshape(len(previous.projected), -1, x.size(-1))  # [S', b · m, d]
        context = self.mechanism.look_back(by_sentence, previous.projected, previous.padding).view_as(x)
        has_context = (~previous.padding).flatten(1).any(1).repeat_interleave(by_sentence.size(1))
        return self.gate(x.flatten(0, 1), context.flatten(0, 1), has_context).view_as(x)


class DocumentTransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder with :class:`DocumentDecoderLayer`.

    Args:
        fairseq_cfg: fairseq's nested configuration.
        cfg: options of the model.
        dictionary: target dictionary.
        embed: target embeddings.
        make_source_attention: builds the attention of a layer to the sources.
    """

    def __init__(
        self,
        fairseq_cfg: TransformerConfig,
        cfg: DocumentTransformerOptions,
        dictionary: Dictionary,
        embed: nn.Embedding,
        make_source_attention: Callable[[], SourceAttention],
    ):
        self.document_cfg = cfg
        self.make_source_attention = make_source_attention
        self.layer_numbers = itertools.count()
        super().__init__(fairseq_cfg, dictionary, embed)
        if not cfg.decoder_learned_pos and cfg.sinusoids != FAIRSEQ:
            self.embed_positions: Any = TargetSinusoids(cfg.decoder_embed_dim, str(cfg.sinusoids))
        self.start = {EOS: dictionary.eos(), PAD: dictionary.pad()}[str(cfg.decoder_start)]
        self.target_context = None if cfg.target_context_attention == NONE else TargetContext(cfg)

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        """Builds the next layer; called by fairseq."""
        with_context = next(self.layer_numbers) in decoder_context_layers(self.document_cfg)
        context = decoder_context_mechanism(self.document_cfg) if with_context else None
        return DocumentDecoderLayer(self.document_cfg, self.make_source_attention, context)

    def build_output_projection(self, cfg: TransformerConfig, dictionary: Dictionary, embed: nn.Embedding) -> None:
        """Builds fairseq's output projection, with a bias if ``--output-bias`` is set."""
        super().build_output_projection(cfg, dictionary, embed)
        if self.document_cfg.output_bias:
            self.output_projection.bias = nn.Parameter(torch.zeros(len(dictionary)))

    def plans(self) -> Iterator[PlanKey[Any]]:
        """Plans that :meth:`decode_packed` uses."""
        yield WithinTargets()
        for layer in self.layers.children():
            yield from layer.encoder_attn.plans()
            if layer.context is not None:
                yield TargetsToSentences()
        if self.target_context is not None:
            yield self.target_context.targets

    def embed(self, tokens: Tensor, positions: Optional[Tensor]) -> Tensor:
        """Embedded tokens [..., d] from tokens [...] and position embeddings [..., d]."""
        if self.start != self.dictionary.eos():  # occurs only as the first input
            tokens = tokens.masked_fill(tokens.eq(self.dictionary.eos()), self.start)
        x = self.embed_scale * self.embed_tokens(tokens)
        if positions is not None:
            x = x + positions.to(x.dtype)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        return self.dropout_module(x)

    def decode_packed(
        self, prev_output_tokens: Tensor, sources: EncoderOutputs, features_only: bool = False
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Packed logits (or features) [target tokens, ...] under teacher forcing, and extras.

        Args:
            prev_output_tokens: right-padded [S, m_t].
            sources: encoder outputs, whose layout has targets.
            features_only: omit the output projection.
        """
        layout, positions = sources.layout, None
        targets = layout.target_tokens
        if self.embed_positions is not None:
            positions = targets.pack(self.embed_positions(prev_output_tokens))
        x, view = self.embed(targets.pack(prev_output_tokens), positions), PackedDecoderInput(sources)  # [N_t, d]
        recompute = self.training and self.document_cfg.checkpoint_activations
        for layer in self.layers:
            x = recomputed(layer, x, view)[0] if recompute else layer(x, view)[0]
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        if self.target_context is not None:
            x = self.target_context(x, layout)
        return (x if features_only else self.output_layer(x)), {"attn": [None], "inner_states": []}

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: Optional[IncrementalState] = None,
        full_context_alignment: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Features of hypotheses [B, m, d], and extras as in fairseq's decoder.

        The encoder outputs include the previous translations of the document.
        """
        sources = EncoderOutputs.of(encoder_out)
        features, extra = self.features_without_context(
            prev_output_tokens, sources, incremental_state, alignment_layer, alignment_heads
        )
        if sources.previous is not None and self.target_context is not None:
            features = self.target_context.look_back(features, sources.previous)
        return features, extra

    def features_without_context(
        self,
        prev_output_tokens: Tensor,
        sources: EncoderOutputs,
        incremental_state: Optional[IncrementalState] = None,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Features without target-side context."""
        positions = None
        if self.embed_positions is not None:
            positions = self.embed_positions(prev_output_tokens, incremental_state=incremental_state)
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            positions = None if positions is None else positions[:, -1:]
        x, view = self.embed(prev_output_tokens, positions), PaddedDecoderInput(sources, incremental_state)  # [B, m, d]
        x, weights = self.through_layers(x, view, self.num_layers - 1 if alignment_layer is None else alignment_layer)
        attention = None if weights is None else weights[:alignment_heads].float().mean(0).to(x)  # [B, m, n]
        return x, {"attn": [attention], "inner_states": []}

    def through_layers(
        self, x: Tensor, targets: DecoderInput, wanted: Optional[int] = None
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Final states of target tokens, of the shape of x, and the attention weights of a layer, if available.

        Args:
            x: embedded tokens.
            targets: computes the attentions.
            wanted: layer whose weights are returned; None: no weights.
        """
        attention = None
        for number, layer in enumerate(self.layers):
            x, weights = layer(x, targets, number == wanted)
            attention = attention if weights is None else weights
        return (x if self.layer_norm is None else self.layer_norm(x)), attention

    def project_targets(self, prev_output_tokens: Tensor, sources: EncoderOutputs) -> Tensor:
        """Keys and values [S', m_t, w] for later sentences, from right-padded target sentences [S', m_t]."""
        assert self.target_context is not None
        features, _ = self.features_without_context(prev_output_tokens, sources)
        return self.target_context.mechanism.project_targets(features)

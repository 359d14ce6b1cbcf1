"""Transformer encoder over packed documents, with fairseq's parameters and without padding."""

import itertools
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, Optional, Sequence

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase
from fairseq.modules import LayerNorm
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey, WithinSentences
from docnmt_fairseq.context.base import ADDED, CONTEXT_MECHANISMS, GATED, ContextMechanism
from docnmt_fairseq.data.extra_sources import ExtraSourceInput
from docnmt_fairseq.layers.attention import SentenceSelfAttention
from docnmt_fairseq.layers.auxiliary_losses import recomputed
from docnmt_fairseq.layers.base import ContextGate
from docnmt_fairseq.layers.positions import ADDED_LEVELS, PositionTable, StructuralPositions
from docnmt_fairseq.models.base import DocumentEncoder, ResidualLayer
from docnmt_fairseq.models.encoder_outputs import ENCODER_OUTPUTS, EncoderOut, EncoderOutputs
from docnmt_fairseq.models.extra_sources import ExtraSources, SourceEncoder
from docnmt_fairseq.models.transformer.config import (
    DocumentTransformerOptions,
    context_layers,
    context_placement,
    feed_forward,
    layer_config,
    starts_at_identity,
)
from docnmt_fairseq.options import options_of


def context_mechanism(cfg: DocumentTransformerOptions) -> ContextMechanism:
    """Context mechanism of one encoder layer."""
    placement, layer = context_placement(cfg), layer_config(cfg, "encoder")
    heads = cfg.context_heads or (1 if placement == "heads" else layer.heads)
    head_dim = layer.head_dim if placement == "heads" else layer.embed_dim // heads
    layer = replace(layer, heads=heads, head_dim=head_dim, zero_init=starts_at_identity(cfg) and placement in ADDED)
    mechanism = CONTEXT_MECHANISMS[cfg.context_attention]
    return mechanism(layer, options_of(cfg, mechanism.Options))


def word_positions(cfg: DocumentTransformerOptions, padding_idx: int) -> PositionTable:
    """Position embeddings of tokens; rows start after the padding's, as in fairseq."""
    return PositionTable(str(cfg.word_positions), cfg.max_source_positions, padding_idx + 1, str(cfg.sinusoids))


def added_positions(cfg: DocumentTransformerOptions) -> Dict[str, PositionTable]:
    """Position embeddings of each level above tokens ([T] sec. 1.2)."""
    sizes = {"sentence": cfg.max_sentence_positions, "paragraph": cfg.max_paragraph_positions}
    return {
        level: PositionTable(str(getattr(cfg, f"{level}_positions")), sizes.get(level, cfg.max_section_positions))
        for level in ADDED_LEVELS
    }


class DocumentEncoderLayer(ResidualLayer):
    """Self-attention within sentences and feed-forward, with an optional context mechanism.

    Args:
        cfg: options of the model.
        context: context mechanism; None: a sentence-level layer.
    """

    def __init__(self, cfg: DocumentTransformerOptions, context: Optional[ContextMechanism] = None):
        super().__init__(cfg, "encoder")
        layer = layer_config(cfg, "encoder")
        self.placement = None if context is None else context_placement(cfg)
        self.self_attn: nn.Module = SentenceSelfAttention(layer.embed_dim, layer.heads, layer.dropout)
        self.self_attn_layer_norm = LayerNorm(layer.embed_dim)
        self.feed_forward = feed_forward(cfg, "encoder")
        self.final_layer_norm = LayerNorm(layer.embed_dim)
        if context is not None and self.placement == "replace":
            self.self_attn = context
        elif context is not None:
            self.context = context
        if self.placement in GATED:
            self.context_gate = ContextGate(layer.embed_dim, starts_at_identity(cfg))
        # The attention's input is normalised already, and so are all states of post-norm models.
        after_attention = self.placement in ("gated-feed-forward", "gated-output") and self.normalize_before
        after_attention &= context is not None and not context.asks_attention
        if self.placement == "block" or after_attention:
            self.context_layer_norm = nn.LayerNorm(layer.embed_dim)

    def forward(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Packed states [N, d].

        Args:
            x: packed states [N, d].
            layout: the batch.
            embeddings: [N, d] embedded tokens, the encoder's input.
        """
        attended = self.attention(self.enter(x, self.self_attn_layer_norm), layout, embeddings)
        x = self.leave(x, attended, self.self_attn_layer_norm)
        if self.placement == "block":
            # Pre-norm in post-norm models, too, so that the block can start as the identity.
            x = x + self.dropout_module(self.enrich(self.context_layer_norm(x), layout, embeddings))
        y = self.leave(x, self.feed_forward(self.enter(x, self.final_layer_norm)), self.final_layer_norm)
        if self.placement in ("gated-feed-forward", "gated-output"):
            queries = y if self.placement == "gated-output" else x
            if self.context.asks_attention:
                queries = attended
            elif self.normalize_before:
                queries = self.context_layer_norm(queries)
            y = self.gate(y, queries, layout, embeddings)
        return y

    def attention(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Self-attention, with context in the placements ``heads`` and ``gated-attention``."""
        y = self.self_attn(x, layout)
        if self.placement == "heads":
            return y + self.enrich(x, layout, embeddings)
        return self.gate(y, x, layout, embeddings) if self.placement == "gated-attention" else y

    def enrich(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Context [N, d] of tokens x [N, d]."""
        return self.context(x, layout, embeddings) if self.context.reads_embeddings else self.context(x, layout)

    def gate(self, source: Tensor, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Gated sum of ``source`` [N, d] and the context of tokens x."""
        return self.context_gate(source, self.enrich(x, layout, embeddings), self.context.has_context(layout))


def encoded(encoder: Any, embed_tokens: nn.Embedding, tokens: Tensor, layout: DocumentLayout) -> Tensor:
    """Packed states [N, d] of packed tokens [N], from the layers of an encoder."""
    x = encoder.embed_scale * embed_tokens(tokens)
    x = x + encoder.embed_positions(layout).to(x.dtype)
    if encoder.layernorm_embedding is not None:
        x = encoder.layernorm_embedding(x)
    x = embeddings = encoder.dropout_module(x)
    for layer in encoder.layers:
        inputs = (x, layout, embeddings)
        x = recomputed(layer, *inputs) if encoder.recompute and encoder.training else layer(*inputs)
    return x if encoder.layer_norm is None else encoder.layer_norm(x)


class SeparateEncoder(SourceEncoder):
    """Separate Transformer encoder for one extra source: layers of the main encoder's kind and width without context.

    Args:
        cfg: options of the model.
        embed_tokens: embeddings; None: the main encoder's.
        padding_idx: index of the padding symbol.
    """

    def __init__(self, cfg: DocumentTransformerOptions, embed_tokens: Optional[nn.Embedding], padding_idx: int):
        super().__init__()
        width = cfg.encoder_embed_dim
        self.recompute = cfg.checkpoint_activations
        self.embed_tokens = embed_tokens
        self.embed_scale = 1.0 if cfg.no_scale_embedding else width**0.5
        self.embed_positions = StructuralPositions(width, word_positions(cfg, padding_idx))
        self.layernorm_embedding = nn.LayerNorm(width) if cfg.layernorm_embedding else None
        self.dropout_module = nn.Dropout(cfg.dropout)
        layers = cfg.extra_encoder_layers or cfg.encoder_layers
        self.layers = nn.ModuleList(DocumentEncoderLayer(cfg) for _ in range(layers))
        self.layer_norm = nn.LayerNorm(width) if cfg.encoder_normalize_before else None

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        yield WithinSentences()

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: DocumentEncoder) -> Tensor:
        assert layout is not None
        return encoded(self, self.embed_tokens or main.embed_tokens, values, layout)


class DocumentTransformerEncoder(DocumentEncoder, TransformerEncoderBase):
    """Encodes the sentences of whole documents; its output has fairseq's format, one sentence per row.

    Args:
        fairseq_cfg: fairseq's nested configuration.
        cfg: options of the model.
        dictionary: source dictionary.
        embed: source embeddings.
        inputs: extra sources.
    """

    def __init__(
        self,
        fairseq_cfg: TransformerConfig,
        cfg: DocumentTransformerOptions,
        dictionary: Dictionary,
        embed: nn.Embedding,
        inputs: Sequence[ExtraSourceInput] = (),
    ):
        self.document_cfg = cfg
        self.layer_numbers = itertools.count()
        self.recompute = cfg.checkpoint_activations
        super().__init__(fairseq_cfg, dictionary, embed)
        width = cfg.encoder_embed_dim
        self.embed_positions = StructuralPositions(
            width,
            word_positions(cfg, self.padding_idx),
            str(cfg.word_positions_from),
            added_positions(cfg),
            zero=starts_at_identity(cfg),
        )
        self.extra_sources = ExtraSources(cfg, inputs, dictionary, width, self.build_separate_encoder)

    def build_encoder_layer(self, cfg: TransformerConfig) -> nn.Module:
        """Builds the next layer; called by fairseq."""
        with_context = next(self.layer_numbers) in context_layers(self.document_cfg)
        context = context_mechanism(self.document_cfg) if with_context else None
        return DocumentEncoderLayer(self.document_cfg, context)

    def build_separate_encoder(self, embed_tokens: Optional[nn.Embedding]) -> SourceEncoder:
        """Builds a separate encoder of an extra source, with given embeddings or (None) this encoder's."""
        return SeparateEncoder(self.document_cfg, embed_tokens, self.padding_idx)

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> Dict[str, Tensor]:
        """Does nothing: fairseq's method renames parameters of its own layers in early checkpoints."""
        return state_dict

    def plans(self) -> Iterator[PlanKey[Any]]:
        using = (part for part in self.layers.modules() if hasattr(type(part), "plans"))
        of_layers = dict.fromkeys([WithinSentences(), *itertools.chain.from_iterable(part.plans() for part in using)])
        yield from of_layers
        yield from self.extra_sources.plans(of_layers)

    def encode_tokens(
        self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None
    ) -> Tensor:
        return encoded(self, embed_tokens or self.embed_tokens, tokens, layout)

    def encoder_out(self, sources: EncoderOutputs) -> EncoderOut:
        """fairseq's encoder output of the decoded rows: ``encoder_out`` [m, S, d] etc."""
        rows = sources.layout.decoded_tokens
        return {
            "encoder_out": [rows.pad(sources.by_source[0].states).transpose(0, 1)],
            "encoder_padding_mask": [rows.padding_mask()],
            "encoder_embedding": [],
            "encoder_states": [],
            "fc_results": [],
            "src_tokens": [],
            "src_lengths": [rows.lengths_tensor.to(torch.int32).unsqueeze(1)],
            ENCODER_OUTPUTS: [sources],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Encoder output for the rows ``new_order`` [B].

        Hypotheses of a sentence share its columns of ``encoder_out`` and of the mask; the :class:`EncoderOutputs` maps
        them to sentences. Nothing is copied unless a sentence finishes.
        """
        sources, kept, moved = EncoderOutputs.of(encoder_out).reordered(new_order)
        if moved:
            encoder_out = TransformerEncoderBase.reorder_encoder_out(self, encoder_out, kept)
        return {**encoder_out, ENCODER_OUTPUTS: [sources]}

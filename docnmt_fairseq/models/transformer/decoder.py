"""The Transformer decoder: over packed target tokens in training and validation, over hypotheses in a search."""

import itertools
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.modules import LayerNorm
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plans import TargetsToSentences, WithinTargets
from docnmt_fairseq.batch.layout import PlanKey
from docnmt_fairseq.context.base import DecoderContextMechanism
from docnmt_fairseq.layers.auxiliary_losses import recomputed
from docnmt_fairseq.layers.positions import FAIRSEQ, sinusoid
from docnmt_fairseq.models.encoder_outputs import EncoderOut, EncoderOutputs
from docnmt_fairseq.models.transformer.attention import IncrementalState, SourceAttention, TargetSelfAttention
from docnmt_fairseq.models.transformer.config import (
    EOS,
    NONE,
    PAD,
    DocumentTransformerOptions,
    decoder_context_layers,
    decoder_context_mechanism,
    layer_config,
)
from docnmt_fairseq.models.transformer.decoder_input import DecoderInput, PackedDecoderInput, PaddedDecoderInput
from docnmt_fairseq.models.transformer.feed_forward import feed_forward
from docnmt_fairseq.models.transformer.target_context import TargetContext


class DocumentDecoderLayer(nn.Module):
    """Self-attention, attention to the sources, the feed-forward, and perhaps context from the source document.

    Args:
        cfg: the model's options.
        source_attention: makes the attention to the sources.
        context: the mechanism; None: a sentence-level layer.
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
        """States of the shape of x, and the weights of source tokens where they are wanted and had.

        Args:
            x: [N_t, d] or [B, m, d], as ``targets`` has them.
            targets: what they look at.
            weights: whether they are wanted.
        """
        x = self.sub_layer(x, self.self_attn_layer_norm, lambda y: targets.self_attention(self.self_attn, y))
        seen: List[Optional[Tensor]] = []

        def look_at_sources(y: Tensor) -> Tensor:
            found, shares = targets.source_attention(self.encoder_attn, y, weights)
            seen.append(shares)
            return found

        x = self.sub_layer(x, self.encoder_attn_layer_norm, look_at_sources)
        x = self.sub_layer(x, self.final_layer_norm, self.feed_forward)
        if self.context is not None:
            # Pre-norm also in a post-norm model: only so can the sub-layer begin as the identity.
            x = x + self.dropout_module(targets.context(self.context, self.context_layer_norm(x)))
        return x, seen[0]

    def sub_layer(self, x: Tensor, norm: nn.Module, function: Callable[[Tensor], Tensor]) -> Tensor:
        """x + dropout(function(x)), normalised before or after as the model has it."""
        x = x + self.dropout_module(function(norm(x) if self.normalize_before else x))
        return x if self.normalize_before else norm(x)


class TargetSinusoids(nn.Module):
    """Sinusoids of target tokens by another formula than fairseq's, asked for as fairseq asks for its own.

    Args:
        embed_dim: d.
        formula: of :data:`~docnmt_fairseq.layers.positions.SINUSOIDS`; positions count from 0.
    """

    max_positions = 100_000  # as many as fairseq's have

    def __init__(self, embed_dim: int, formula: str):
        super().__init__()
        self.embed_dim, self.formula = embed_dim, formula

    def forward(self, tokens: Tensor, incremental_state: Optional[IncrementalState] = None, **unused: object) -> Tensor:
        """Embeddings [B, m, d] of tokens [B, m], right-padded; in a search of the last ones alone, [B, 1, d]."""
        positions = torch.arange(tokens.size(1), device=tokens.device)
        positions = positions if incremental_state is None else positions[-1:]
        return sinusoid(positions, self.embed_dim, formula=self.formula).expand(len(tokens), -1, -1)


class DocumentTransformerDecoder(TransformerDecoderBase):
    """fairseq's decoder with layers of ours.

    Args:
        fairseq_cfg: fairseq's nested configuration.
        cfg: the model's options.
        dictionary: of the target language.
        embed: its embeddings.
        make_source_attention: makes the attention of a layer to the sources.
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
        """The next layer, as fairseq asks for it."""
        with_context = next(self.layer_numbers) in decoder_context_layers(self.document_cfg)
        context = decoder_context_mechanism(self.document_cfg) if with_context else None
        return DocumentDecoderLayer(self.document_cfg, self.make_source_attention, context)

    def build_output_projection(self, cfg: TransformerConfig, dictionary: Dictionary, embed: nn.Embedding) -> None:
        """fairseq's, with a bias where the options say so."""
        super().build_output_projection(cfg, dictionary, embed)
        if self.document_cfg.output_bias:
            self.output_projection.bias = nn.Parameter(torch.zeros(len(dictionary)))

    def plans(self) -> Iterator[PlanKey[Any]]:
        """The plans that :meth:`decode_packed` will ask a layout for."""
        yield WithinTargets()
        for layer in self.layers.children():
            yield from layer.encoder_attn.plans()
            if layer.context is not None:
                yield TargetsToSentences()
        if self.target_context is not None:
            yield self.target_context.targets

    def embed(self, tokens: Tensor, positions: Optional[Tensor]) -> Tensor:
        """States [..., d] of tokens [...] and their positions' embeddings [..., d]."""
        if self.start != self.dictionary.eos():  # inputs hold it nowhere but where they begin
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
            sources: what target tokens may look at; their layout has targets.
            features_only: leave out the output projection.
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
        """The features of hypotheses [B, m, d], and extras as fairseq's decoder gives them: see there.

        What stands before the sentences in their documents' translations is among the encoder's output.
        """
        sources = EncoderOutputs.of(encoder_out)
        features, extra = self.features_by_themselves(
            prev_output_tokens, sources, incremental_state, alignment_layer, alignment_heads
        )
        if sources.previous is not None and self.target_context is not None:
            features = self.target_context.look_back(features, sources.previous)
        return features, extra

    def features_by_themselves(
        self,
        prev_output_tokens: Tensor,
        sources: EncoderOutputs,
        incremental_state: Optional[IncrementalState] = None,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """The features that sentences have whatever was said before them in the target language."""
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
        self, x: Tensor, view: DecoderInput, wanted: Optional[int] = None
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """The last states of target tokens, of the shape of x, and the weights of a layer's attention, if it has them.

        Args:
            x: embedded tokens.
            view: what they look at.
            wanted: the layer whose weights are wanted; None: no one's.
        """
        attention = None
        for number, layer in enumerate(self.layers):
            x, weights = layer(x, view, number == wanted)
            attention = attention if weights is None else weights
        return (x if self.layer_norm is None else self.layer_norm(x)), attention

    def project_targets(self, prev_output_tokens: Tensor, sources: EncoderOutputs) -> Tensor:
        """What later sentences look at, [S', m_t, w], of right-padded target sentences [S', m_t]."""
        assert self.target_context is not None
        features, _ = self.features_by_themselves(prev_output_tokens, sources)
        return self.target_context.mechanism.project_targets(features)

"""Transformer decoder: over packed target tokens in training and validation, over hypotheses during decoding."""

import itertools
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Sequence, Tuple, Union

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.incremental_decoding_utils import FairseqIncrementalState
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.modules import LayerNorm
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import (
    DocumentLayout,
    OfTargets,
    PlanKey,
    TargetsToSentences,
    TargetsToSource,
    WithinTargets,
)
from docnmt_fairseq.batch.sources import SourceKey
from docnmt_fairseq.context.base import (
    DECODER_MECHANISMS,
    TARGET_MECHANISMS,
    DecoderContextMechanism,
    TargetContextMechanism,
)
from docnmt_fairseq.layers.attention import MultiHeadAttention
from docnmt_fairseq.layers.auxiliary_losses import recomputed
from docnmt_fairseq.layers.base import ContextGate, LayerConfig
from docnmt_fairseq.layers.positions import FAIRSEQ, sinusoid
from docnmt_fairseq.layers.search_kernels import attend_hypotheses
from docnmt_fairseq.models.base import ResidualLayer
from docnmt_fairseq.models.encoder_outputs import EncoderOut, EncoderOutputs, PreviousTargets
from docnmt_fairseq.models.transformer.combined_attention import CombinedAttention
from docnmt_fairseq.models.transformer.config import (
    NONE,
    DocumentTransformerOptions,
    combination_name,
    decoder_context_layers,
    feed_forward,
    layer_config,
    starts_at_identity,
)
from docnmt_fairseq.options import options_of

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


# --- Attention ---


class FairseqAttention(MultiHeadAttention):
    """Multi-head attention with the parameter order and, for the same seed, the initial values of fairseq's."""

    def add_projections(self, embed_dim: int, source_dim: int) -> None:
        self.k_proj = nn.Linear(source_dim, embed_dim)
        self.v_proj = nn.Linear(source_dim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        gain = 2**-0.5 if source_dim == embed_dim else 1.0
        for linear in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(linear.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def heads_first(self, x: Tensor) -> Tensor:
        """[B, H, m, d/H] from [B, m, d]."""
        return self.split_heads(x).transpose(1, 2)


class TargetSelfAttention(FairseqIncrementalState, FairseqAttention):
    """Causal self-attention of target tokens."""

    # types of fairseq's methods
    get_incremental_state: Callable[[IncrementalState, str], Optional[Dict[str, Tensor]]]
    set_incremental_state: Callable[[IncrementalState, str, Dict[str, Tensor]], IncrementalState]

    def attend_rows(self, x: Tensor, incremental_state: Optional[IncrementalState]) -> Tensor:
        """Attention output [B, m, d].

        Args:
            x: [B, m, d] all tokens of each row; with an incremental state the last one, m = 1.
            incremental_state: cached keys and values.
        """
        q, k, v = (self.heads_first(proj(x)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        if incremental_state is not None:
            before = self.get_incremental_state(incremental_state, "before")
            if before is not None:
                k, v = torch.cat([before["k"], k], dim=2), torch.cat([before["v"], v], dim=2)
            self.set_incremental_state(incremental_state, "before", {"k": k, "v": v})
        dropout = self.dropout if self.training else 0.0
        output = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=incremental_state is None)
        return self.out_proj(output.transpose(1, 2).flatten(2))

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> IncrementalState:
        """Selects the cache of the rows ``new_order``."""
        before = self.get_incremental_state(incremental_state, "before")
        if before is not None:
            moved = {name: part.index_select(0, new_order) for name, part in before.items()}
            self.set_incremental_state(incremental_state, "before", moved)
        return incremental_state


class SingleSourceAttention(FairseqAttention):
    """fairseq's encoder-decoder attention to the tokens of the source sentence."""

    def plans(self) -> Iterator[PlanKey[Any]]:
        """Plans that :meth:`attend_packed` uses."""
        yield TargetsToSource()

    def attend_packed(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """Attention output [N_t, d] of packed target tokens x [N_t, d]."""
        return self.attend(x, sources.by_source[0].states, sources.layout.plan(TargetsToSource()))

    def project_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """Input of :meth:`attend_hypotheses`, once per sentence: keys and values [S, H, n, d/H], mask [S, 1, n, 1].

        Zeros may be appended to the n states: their masks are False.
        """
        states, padding = sources.by_source[0].padded(sources.layout, sources.taken)
        sides = (self.heads_first(proj(states)).contiguous() for proj in (self.k_proj, self.v_proj))
        return [*sides, ~padding[:, None, :, None]]

    def attend_hypotheses(
        self, x: Tensor, projected: List[Tensor], weights: bool = False
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Attention output of hypotheses, [S, b, d], and the weights of the source tokens if wanted, [S, H, b, n].

        Args:
            x: [S, b, d] b tokens of hypotheses of each sentence.
            projected: result of :meth:`project_sources`.
            weights: return weights.
        """
        k, v, seen = projected
        q = self.split_heads(self.q_proj(x))
        if not weights:
            return self.out_proj(attend_hypotheses(q, k, v, seen[:, 0].transpose(1, 2))), None
        scores = (q.transpose(1, 2) / q.size(-1) ** 0.5) @ k.transpose(-1, -2)
        shares = scores.masked_fill(~seen.transpose(-1, -2), -torch.inf).softmax(-1)
        return self.out_proj((shares @ v).transpose(1, 2).flatten(2)), shares


SourceAttention = Union[SingleSourceAttention, CombinedAttention]


# --- Arrangements of target tokens ---


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
        return attention.attend(x, x, self.sources.layout.plan(WithinTargets()))

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        return attention.attend_packed(x, self.sources), None

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        layout = self.sources.layout
        projected = mechanism.project(self.sources.states, layout)
        return mechanism.attend(x, projected, layout.plan(TargetsToSentences()))


@dataclass(frozen=True)
class PaddedDecoderInput:
    """Decoding: rows [B, m, d], the same number for each remaining sentence; attention weights are [H, B, m, n]."""

    sources: EncoderOutputs
    incremental_state: Optional[IncrementalState] = None

    def self_attention(self, attention: TargetSelfAttention, x: Tensor) -> Tensor:
        return attention.attend_rows(x, self.incremental_state)

    def source_attention(self, attention: SourceAttention, x: Tensor, weights: bool) -> Tuple[Tensor, Optional[Tensor]]:
        by_sentence = x.reshape(self.sources.left, -1, x.size(-1))  # [S', b · m, d]
        keys = self.sources.per_sentence(attention, lambda: attention.project_sources(self.sources))
        y, shares = attention.attend_hypotheses(by_sentence, keys, weights)
        if shares is not None:
            shares = shares.transpose(0, 1).unflatten(2, (-1, x.size(1))).flatten(1, 2)
        return y.view_as(x), shares

    def context(self, mechanism: DecoderContextMechanism, x: Tensor) -> Tensor:
        sources, layout = self.sources, self.sources.layout
        projected = sources.per_batch(mechanism, lambda: mechanism.project(sources.states, layout))
        mask = sources.row_document()[:, None] == layout.sentences.item_row  # [B, R]
        y = mechanism.attend_masked(x.flatten(0, 1), projected, mask.repeat_interleave(x.size(1), 0))
        return y.view_as(x)


# --- Decoder ---


def context_layer_config(cfg: DocumentTransformerOptions) -> LayerConfig:
    """Configuration for context mechanisms in the decoder."""
    return replace(
        layer_config(cfg, "decoder"),
        source_dim=cfg.encoder_embed_dim,
        source_heads=cfg.encoder_attention_heads,
        zero_init=starts_at_identity(cfg),
    )


class DocumentDecoderLayer(ResidualLayer):
    """Self-attention, attention to the sources, feed-forward, and optionally context from the source document.

    Args:
        cfg: options of the model.
        extra_rows: keys of the plans that map decoded sentences to the states of each extra source.
        context: context mechanism; None: a sentence-level layer.
    """

    def __init__(
        self,
        cfg: DocumentTransformerOptions,
        extra_rows: Sequence[SourceKey],
        context: Optional[DecoderContextMechanism],
    ):
        super().__init__(cfg, "decoder")
        width, heads, dropout = cfg.decoder_embed_dim, cfg.decoder_attention_heads, cfg.attention_dropout
        self.self_attn = TargetSelfAttention(width, heads, dropout)
        self.self_attn_layer_norm = LayerNorm(width)
        self.encoder_attn: SourceAttention
        if combination_name(cfg) is None:
            self.encoder_attn = SingleSourceAttention(width, heads, dropout, cfg.encoder_embed_dim)
        else:
            self.encoder_attn = CombinedAttention(cfg, extra_rows)
        self.encoder_attn_layer_norm = LayerNorm(width)
        self.feed_forward = feed_forward(cfg, "decoder")
        self.final_layer_norm = LayerNorm(width)
        self.context = context
        if context is not None:
            self.context_layer_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, targets: DecoderInput, weights: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        """States of the shape of x, and the weights of source tokens if wanted and available.

        Args:
            x: [N_t, d] or [B, m, d], as arranged by ``targets``.
            targets: computes the attentions.
            weights: return weights.
        """
        y = targets.self_attention(self.self_attn, self.enter(x, self.self_attn_layer_norm))
        x = self.leave(x, y, self.self_attn_layer_norm)
        y, shares = targets.source_attention(self.encoder_attn, self.enter(x, self.encoder_attn_layer_norm), weights)
        x = self.leave(x, y, self.encoder_attn_layer_norm)
        x = self.leave(x, self.feed_forward(self.enter(x, self.final_layer_norm)), self.final_layer_norm)
        if self.context is not None:
            # Pre-norm in post-norm models, too, so that the sub-layer can start as the identity.
            x = x + self.dropout_module(targets.context(self.context, self.context_layer_norm(x)))
        return x, shares


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
        mechanism = TARGET_MECHANISMS[cfg.target_context_attention]
        options = replace(options_of(cfg, mechanism.Options), context_selection="previous")  # as in decoding
        self.mechanism = mechanism(context_layer_config(cfg), options)
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
        """States [B, m, d] from x [B, m, d] of hypotheses, the same number for each sentence of ``previous``."""
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
        extra_rows: keys of the plans that map decoded sentences to the states of each extra source.
    """

    def __init__(
        self,
        fairseq_cfg: TransformerConfig,
        cfg: DocumentTransformerOptions,
        dictionary: Dictionary,
        embed: nn.Embedding,
        extra_rows: Sequence[SourceKey],
    ):
        self.document_cfg, self.extra_rows = cfg, extra_rows
        self.layer_numbers = itertools.count()
        super().__init__(fairseq_cfg, dictionary, embed)
        if not cfg.decoder_learned_pos and cfg.sinusoids != FAIRSEQ:
            self.embed_positions: Any = TargetSinusoids(cfg.decoder_embed_dim, str(cfg.sinusoids))
        self.start = dictionary.pad() if str(cfg.decoder_start) == "pad" else dictionary.eos()
        self.target_context = None if cfg.target_context_attention == NONE else TargetContext(cfg)

    def build_decoder_layer(self, fairseq_cfg: TransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        """Builds the next layer; called by fairseq."""
        cfg, context = self.document_cfg, None
        if next(self.layer_numbers) in decoder_context_layers(cfg):
            mechanism = DECODER_MECHANISMS[cfg.decoder_context_attention]
            context = mechanism(context_layer_config(cfg), options_of(cfg, mechanism.Options))
        return DocumentDecoderLayer(cfg, self.extra_rows, context)

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
        targets, positions = sources.layout.target_tokens, None
        if self.embed_positions is not None:
            positions = targets.pack(self.embed_positions(prev_output_tokens))
        x = self.embed(targets.pack(prev_output_tokens), positions)  # [N_t, d]
        x, _ = self.through_layers(x, PackedDecoderInput(sources))
        if self.target_context is not None:
            x = self.target_context(x, sources.layout)
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
        layer = self.num_layers - 1 if alignment_layer is None else alignment_layer
        x, weights = self.features_without_context(prev_output_tokens, sources, incremental_state, layer)
        if sources.previous is not None and self.target_context is not None:
            x = self.target_context.look_back(x, sources.previous)
        attention = None if weights is None else weights[:alignment_heads].float().mean(0).to(x)  # [B, m, n]
        return x, {"attn": [attention], "inner_states": []}

    def features_without_context(
        self,
        prev_output_tokens: Tensor,
        sources: EncoderOutputs,
        incremental_state: Optional[IncrementalState] = None,
        wanted: Optional[int] = None,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Features [B, m, d] without target-side context, and the attention weights of the layer ``wanted``."""
        positions = None
        if self.embed_positions is not None:
            positions = self.embed_positions(prev_output_tokens, incremental_state=incremental_state)
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
            positions = None if positions is None else positions[:, -1:]
        x = self.embed(prev_output_tokens, positions)  # [B, m, d]
        return self.through_layers(x, PaddedDecoderInput(sources, incremental_state), wanted)

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
        recompute = self.training and self.document_cfg.checkpoint_activations and wanted is None
        for number, layer in enumerate(self.layers):
            x, weights = recomputed(layer, x, targets) if recompute else layer(x, targets, number == wanted)
            attention = attention if weights is None else weights
        return (x if self.layer_norm is None else self.layer_norm(x)), attention

    def project_targets(self, prev_output_tokens: Tensor, sources: EncoderOutputs) -> Tensor:
        """Keys and values [S', m_t, w] for later sentences, from right-padded target sentences [S', m_t]."""
        assert self.target_context is not None
        features, _ = self.features_without_context(prev_output_tokens, sources)
        return self.target_context.mechanism.project_targets(features)

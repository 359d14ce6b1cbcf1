"""Parts of the layers of ``document_transformer``, built from its options."""

from dataclasses import replace
from typing import Dict

import torch.nn.functional as F
from fairseq import utils
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import nn

from docnmt_fairseq.context.base import (
    ADDED,
    CONTEXT_MECHANISMS,
    DECODER_MECHANISMS,
    TARGET_MECHANISMS,
    ContextMechanism,
    DecoderContextMechanism,
    TargetContextMechanism,
)
from docnmt_fairseq.layers.base import FEED_FORWARDS, FeedForward, LayerConfig
from docnmt_fairseq.layers.positions import ADDED_LEVELS, PositionTable
from docnmt_fairseq.models.extra_sources import source_names
from docnmt_fairseq.models.transformer.config import (
    SWISH,
    DocumentTransformerOptions,
    context_placement,
    feed_forward_of,
)
from docnmt_fairseq.multisource.base import CombinationConfig
from docnmt_fairseq.options import options_of, plain


def layer_config(cfg: DocumentTransformerOptions, side: str) -> LayerConfig:
    """Configuration of a layer of the encoder or decoder."""
    width, heads = getattr(cfg, f"{side}_embed_dim"), getattr(cfg, f"{side}_attention_heads")
    activation = str(plain(cfg.activation_fn))
    return LayerConfig(
        embed_dim=width,
        heads=heads,
        head_dim=width // heads,
        dropout=cfg.attention_dropout,
        ffn_dim=getattr(cfg, f"{side}_ffn_embed_dim"),
        activation=F.silu if activation == SWISH else utils.get_activation_fn(activation),
        activation_dropout=cfg.activation_dropout,
        residual_dropout=cfg.dropout,
        seed=cfg.seed,
    )


def context_layer_config(cfg: DocumentTransformerOptions) -> LayerConfig:
    """Configuration for the context mechanism of an encoder layer."""
    placement, layer = context_placement(cfg), layer_config(cfg, "encoder")
    heads = cfg.context_heads or (1 if placement == "heads" else layer.heads)
    head_dim = layer.head_dim if placement == "heads" else layer.embed_dim // heads
    return replace(layer, heads=heads, head_dim=head_dim, zero_init=starts_at_identity(cfg) and placement in ADDED)


def decoder_context_layer_config(cfg: DocumentTransformerOptions) -> LayerConfig:
    """Configuration for the context mechanism of a decoder layer."""
    return replace(
        layer_config(cfg, "decoder"),
        source_dim=cfg.encoder_embed_dim,
        source_heads=cfg.encoder_attention_heads,
        zero_init=starts_at_identity(cfg),
    )


def starts_at_identity(cfg: DocumentTransformerOptions) -> bool:
    """True if added parts start without effect, i.e. training starts from the sentence-level model."""
    return plain(cfg.context_init) == "zero"


def context_mechanism(cfg: DocumentTransformerOptions) -> ContextMechanism:
    """Context mechanism of one encoder layer."""
    mechanism = CONTEXT_MECHANISMS[cfg.context_attention]
    return mechanism(context_layer_config(cfg), options_of(cfg, mechanism.Options))


def decoder_context_mechanism(cfg: DocumentTransformerOptions) -> DecoderContextMechanism:
    """Context mechanism of one decoder layer."""
    mechanism = DECODER_MECHANISMS[cfg.decoder_context_attention]
    return mechanism(decoder_context_layer_config(cfg), options_of(cfg, mechanism.Options))


def target_context_mechanism(cfg: DocumentTransformerOptions) -> TargetContextMechanism:
    """Context mechanism over previous target sentences, the only ones that decoding has."""
    mechanism = TARGET_MECHANISMS[cfg.target_context_attention]
    options = replace(options_of(cfg, mechanism.Options), context_selection="previous")
    return mechanism(decoder_context_layer_config(cfg), options)


def combination_config(cfg: DocumentTransformerOptions) -> CombinationConfig:
    """Configuration of the attention combination of each layer.

    The evidence of a Transformer's sentinel is the state s_i: after self-attention it contains what [L] eq. 4 takes
    from the previous token and state.
    """
    return CombinationConfig(
        query_dim=cfg.decoder_embed_dim,
        source_dims=(cfg.encoder_embed_dim,) * len(source_names(cfg)),
        output_dim=cfg.decoder_embed_dim,
        combination_attention=cfg.combination_attention,
        score_dim=cfg.decoder_embed_dim,
        heads=cfg.decoder_attention_heads,
        dropout=cfg.attention_dropout,
        share_combination_projections=cfg.share_combination_projections,
        attention_sentinel=cfg.attention_sentinel,
        evidence_dim=cfg.decoder_embed_dim if cfg.attention_sentinel else 0,
    )


def feed_forward(cfg: DocumentTransformerOptions, side: str) -> nn.Module:
    """Feed-forward of a layer of the encoder or decoder, with fairseq's dropout (``--retain-dropout``)."""
    variant = FEED_FORWARDS[feed_forward_of(cfg, side)]
    made = variant(layer_config(cfg, side), options_of(cfg, variant.Options))
    for part in made.modules():
        if isinstance(part, FeedForward):
            name = f"Document{side.capitalize()}Layer"
            part.activation_dropout = FairseqDropout(cfg.activation_dropout, module_name=name)
    return made


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

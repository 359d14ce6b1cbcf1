"""Options of ``document_transformer``, and what its layers and mechanisms are built from by them."""

import logging
from dataclasses import dataclass, replace
from typing import List, Optional

from omegaconf import II

from docnmt_fairseq import context  # noqa: F401  (registers the mechanisms)
from docnmt_fairseq.context.base import (
    ADDED,
    CONTEXT_MECHANISMS,
    DECODER_MECHANISMS,
    PLACEMENTS,
    TARGET_MECHANISMS,
    ContextMechanism,
    DecoderContextMechanism,
    TargetContextMechanism,
)
from docnmt_fairseq.layers.config import LayerConfig
from docnmt_fairseq.layers.feed_forward import FEED_FORWARDS
from docnmt_fairseq.layers.positions import FAIRSEQ, KINDS, SINUSOIDS, WORD_SCOPES
from docnmt_fairseq.models.alternating import AlternatingOptions
from docnmt_fairseq.models.base import TrainedViewOptions
from docnmt_fairseq.models.extra_sources_config import source_names
from docnmt_fairseq.models.flat_options import flat_options
from docnmt_fairseq.models.token_embeddings import SourceOptions
from docnmt_fairseq.models.transformer.activations import ACTIVATIONS, activation_of
from docnmt_fairseq.models.transformer.lora import LoRAOptions
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import Choices, option, options_of, plain

OF_SEVERAL = "hierarchical"  # the combination where the option leaves it open
NONE = "none"
EOS, PAD = DECODER_STARTS = ("eos", "pad")

logger = logging.getLogger(__name__)


@dataclass
class TransformerOptions(TrainedViewOptions, SourceOptions, AlternatingOptions):
    """Sizes and regularisation as in fairseq's Transformer, then what looks across sentences."""

    activation_fn: str = option("relu", "activation of the feed-forward", names=Choices(ACTIVATIONS))
    dropout: float = option(0.1, "dropout probability of sub-layer outputs and embeddings", minimum=0, maximum=1)
    attention_dropout: float = option(0.0, "dropout probability of attention weights", minimum=0, maximum=1)
    activation_dropout: float = option(0.0, "dropout probability inside the feed-forward", minimum=0, maximum=1)
    encoder_embed_dim: int = option(512, "width of the encoder", minimum=1)
    encoder_ffn_embed_dim: int = option(2048, "width of the encoder's feed-forward", minimum=1)
    encoder_layers: int = option(6, "encoder layers", minimum=0)
    encoder_attention_heads: int = option(8, "attention heads in the encoder", minimum=1)
    encoder_normalize_before: bool = option(False, "layer norm before each sub-layer of the encoder (pre-norm)")
    encoder_layerdrop: float = option(0.0, "probability of dropping a whole encoder layer", minimum=0, maximum=1)
    decoder_embed_dim: int = option(
        II("model.encoder_embed_dim"), "width of the decoder (default: the encoder's)", minimum=1
    )
    decoder_ffn_embed_dim: int = option(II("model.encoder_ffn_embed_dim"), "of the decoder's feed-forward", minimum=1)
    decoder_layers: int = option(6, "decoder layers", minimum=0)
    decoder_attention_heads: int = option(8, "attention heads in the decoder", minimum=1)
    decoder_normalize_before: bool = option(False, "layer norm before each sub-layer of the decoder (pre-norm)")
    decoder_layerdrop: float = option(0.0, "probability of dropping a whole decoder layer", minimum=0, maximum=1)
    decoder_learned_pos: bool = option(False, "learned positions in the decoder instead of sinusoids")
    share_decoder_input_output_embed: bool = option(False, "share the decoder's input and output embeddings")
    share_all_embeddings: bool = option(False, "share all embeddings; needs one joined dictionary")
    layernorm_embedding: bool = option(False, "layer norm after the embeddings")
    no_scale_embedding: bool = option(False, "do not scale embeddings by the square root of their width")
    checkpoint_activations: bool = option(False, "recompute activations in the backward pass: less memory, more time")

    word_positions: str = option("sinusoidal", "positions of words in the encoder", names=Choices(KINDS))
    word_positions_from: str = option(
        "sentence", "count words from the start of the sentence or of the document; a learned table over whole "
        "documents sees few examples of high positions", names=Choices(WORD_SCOPES),
    )  # fmt: skip
    sinusoids: str = option(
        FAIRSEQ, "formula of sinusoidal positions of words, in encoder and decoder: fairseq's, or Marian's, which "
        "counts from 0", names=Choices(SINUSOIDS),
    )  # fmt: skip
    decoder_start: str = option(
        EOS, "whose embedding the decoder begins with: the end of sentence's, or as in Marian the padding's",
        names=Choices(DECODER_STARTS),
    )  # fmt: skip
    output_bias: bool = option(False, "add a bias to the logits")
    sentence_positions: str = option("none", "positions of sentences in the document, from 0", names=Choices(KINDS))
    paragraph_positions: str = option("none", "positions of paragraphs in the document, from 0", names=Choices(KINDS))
    section_positions: str = option("none", "positions of sections in the document, from 0", names=Choices(KINDS))
    chapter_positions: str = option("none", "positions of chapters in the document, from 0", names=Choices(KINDS))
    part_positions: str = option("none", "positions of parts in the document, from 0", names=Choices(KINDS))
    max_sentence_positions: int = option(
        256, "rows of a learned sentence table; later sentences share the last", minimum=1
    )
    max_paragraph_positions: int = option(
        64, "rows of a learned paragraph table; later paragraphs share the last", minimum=1
    )
    max_section_positions: int = option(
        64, "rows of a learned table of sections, chapters or parts; later ones share the last", minimum=1
    )

    freeze_sentence_model: bool = option(False, "train only what the sentence-level model does not have")
    context_lr_scale: float = option(
        1.0, "what the sentence-level model does not have learns at so many times the learning rate; more than 1 where "
        "the rest begins trained", minimum=0,
    )  # fmt: skip


@dataclass
class ContextOptions:
    """What looks across sentences, in encoder and decoder, and where."""

    context_attention: str = option(NONE, "context mechanism", names=CONTEXT_MECHANISMS, also=(NONE,))
    context_placement: Optional[str] = option(
        None, "block: a residual sub-layer between self-attention and feed-forward; heads: additional heads of the "
        "self-attention; replace: instead of self-attention; gated-attention, gated-feed-forward, gated-output: a gate "
        "between context and self-attention, the feed-forward, or the layer's output (default: the mechanism's own)",
        names=Choices(PLACEMENTS),
    )  # fmt: skip
    context_layers: List[int] = option(
        list, "encoder layers with context, from 0, e.g. 3,4,5 (default: the upper half; mechanisms with a gate: the "
        "last)"
    )  # fmt: skip
    context_heads: int = option(
        0, "heads of the context mechanism in the encoder; 0: as many as self-attention (heads placement: 1)", minimum=0
    )
    decoder_context_attention: str = option(
        NONE, "mechanism by which target tokens see the source document", names=DECODER_MECHANISMS, also=(NONE,)
    )
    decoder_context_layers: List[int] = option(
        list, "decoder layers with context, from 0, e.g. 3,4,5 (default: the upper half)"
    )
    target_context_attention: str = option(
        NONE, "mechanism by which target tokens see the target sentences before theirs, behind a gate at the end of "
        "the decoder; documents are then translated sentence by sentence", names=TARGET_MECHANISMS, also=(NONE,),
    )  # fmt: skip
    context_init: str = option(
        "zero", "output projection of added context sub-layers, the context's share in gated ones, learned positions "
        "but those of tokens: zero begins as the identity, i.e. as the sentence-level model; xavier: as usual",
        names=Choices(("zero", "xavier")),
    )  # fmt: skip


@dataclass
class AttentionOptions:
    """How encoder-decoder attention goes over the sources: the sentence to be translated and ``--extra-sources``."""

    attention_combination: Optional[str] = option(
        None, f"how target tokens attend to all sources (default: of several sources {OF_SEVERAL}, of one fairseq's "
        "own attention)", names=ATTENTION_COMBINATIONS,
    )  # fmt: skip
    combination_attention: str = option(
        "dot-product", "how they attend to one; only with a combination (flat is that attention itself where there is "
        "one source)", names=ATTENTION_SCORES,
    )  # fmt: skip
    share_combination_projections: bool = option(
        False, "flat and hierarchical: make context vectors of the same projections as energies"
    )
    attention_sentinel: bool = option(
        False, "flat and hierarchical: let target tokens attend to their own state, away from all sources"
    )


@dataclass
class FeedForwardOptions:
    """What stands in the place of the feed-forward sub-layers."""

    feed_forward: str = option(
        "standard", "feed-forward of encoder and decoder: standard; ca-nn: that behind an indicator χ of its input, "
        "χ v(c) + (1 - χ) w0 (as many parameters as standard with one hidden unit less); ca-res: a block of such "
        "layers", names=FEED_FORWARDS,
    )  # fmt: skip
    encoder_feed_forward: Optional[str] = option(
        None, "feed-forward of the encoder (default: --feed-forward)", names=FEED_FORWARDS
    )
    decoder_feed_forward: Optional[str] = option(
        None, "feed-forward of the decoder (default: --feed-forward)", names=FEED_FORWARDS
    )


@dataclass
class DocumentTransformerOptions(TransformerOptions, ContextOptions, AttentionOptions, FeedForwardOptions, LoRAOptions):
    """All options of the model itself; those of its parts are in the parts' own ``Options``."""


DocumentTransformerConfig = flat_options(
    "DocumentTransformerConfig",
    __name__,
    [DocumentTransformerOptions, *CONTEXT_MECHANISMS.options(), *FEED_FORWARDS.options()],
)


def feed_forward_of(cfg: DocumentTransformerOptions, side: str) -> str:
    """The name of the feed-forward of the encoder or the decoder."""
    return str(plain(getattr(cfg, f"{side}_feed_forward") or cfg.feed_forward))


def context_placement(cfg: DocumentTransformerOptions) -> str:
    """Where the encoder's context goes."""
    if cfg.context_placement is None and cfg.context_attention != NONE:
        return CONTEXT_MECHANISMS[cfg.context_attention].placements[0]
    return str(plain(cfg.context_placement))


def context_layers(cfg: DocumentTransformerOptions) -> List[int]:
    """The encoder layers that have context, ascending."""
    if cfg.context_attention == NONE:
        return []
    top_only = CONTEXT_MECHANISMS[cfg.context_attention].top_layer_only
    default = range(cfg.encoder_layers - 1 if top_only else cfg.encoder_layers // 2, cfg.encoder_layers)
    return sorted(set(cfg.context_layers)) or list(default)


def decoder_context_layers(cfg: DocumentTransformerOptions) -> List[int]:
    """The decoder layers that have context, ascending."""
    if cfg.decoder_context_attention == NONE:
        return []
    return sorted(set(cfg.decoder_context_layers)) or list(range(cfg.decoder_layers // 2, cfg.decoder_layers))


def layer_config(cfg: DocumentTransformerOptions, side: str) -> LayerConfig:
    """A layer of the encoder or the decoder."""
    width, heads = getattr(cfg, f"{side}_embed_dim"), getattr(cfg, f"{side}_attention_heads")
    return LayerConfig(
        embed_dim=width,
        heads=heads,
        head_dim=width // heads,
        dropout=cfg.attention_dropout,
        ffn_dim=getattr(cfg, f"{side}_ffn_embed_dim"),
        activation=activation_of(str(plain(cfg.activation_fn))),
        activation_dropout=cfg.activation_dropout,
        residual_dropout=cfg.dropout,
        seed=cfg.seed,
    )


def context_layer_config(cfg: DocumentTransformerOptions) -> LayerConfig:
    """The encoder's layer as its context mechanism sees it, with the heads that the mechanism has there."""
    placement, layer = context_placement(cfg), layer_config(cfg, "encoder")
    heads = cfg.context_heads or (1 if placement == "heads" else layer.heads)
    head_dim = layer.head_dim if placement == "heads" else layer.embed_dim // heads
    return replace(layer, heads=heads, head_dim=head_dim, zero_init=starts_at_identity(cfg) and placement in ADDED)


def decoder_context_layer_config(cfg: DocumentTransformerOptions) -> LayerConfig:
    """The decoder's layer as its context mechanism sees it."""
    return replace(
        layer_config(cfg, "decoder"),
        source_dim=cfg.encoder_embed_dim,
        source_heads=cfg.encoder_attention_heads,
        zero_init=starts_at_identity(cfg),
    )


def starts_at_identity(cfg: DocumentTransformerOptions) -> bool:
    """Whether what is added to a sentence-level model begins without effect."""
    return plain(cfg.context_init) == "zero"


def context_mechanism(cfg: DocumentTransformerOptions) -> ContextMechanism:
    """The mechanism of one encoder layer."""
    mechanism = CONTEXT_MECHANISMS[cfg.context_attention]
    return mechanism(context_layer_config(cfg), options_of(cfg, mechanism.Options))


def decoder_context_mechanism(cfg: DocumentTransformerOptions) -> DecoderContextMechanism:
    """The mechanism of one decoder layer."""
    mechanism = DECODER_MECHANISMS[cfg.decoder_context_attention]
    return mechanism(decoder_context_layer_config(cfg), options_of(cfg, mechanism.Options))


def target_context_mechanism(cfg: DocumentTransformerOptions) -> TargetContextMechanism:
    """The mechanism for previous target sentences; a search knows no others."""
    mechanism = TARGET_MECHANISMS[cfg.target_context_attention]
    options = replace(options_of(cfg, mechanism.Options), context_selection="previous")
    return mechanism(decoder_context_layer_config(cfg), options)


def combination_name(cfg: DocumentTransformerOptions) -> Optional[str]:
    """Which combination of attentions the decoder has; None: fairseq's own attention."""
    return cfg.attention_combination or (OF_SEVERAL if len(source_names(cfg)) > 1 else None)


def combination_config(cfg: DocumentTransformerOptions) -> CombinationConfig:
    """What the combination of each layer is built from.

    The evidence of a Transformer's sentinel is the state s_i itself: after self-attention it holds what [L] eq. 4 takes
    from the token before and the state before.
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

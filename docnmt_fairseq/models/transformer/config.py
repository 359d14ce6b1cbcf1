"""Options of ``document_transformer``, their checks, and what they define in encoder and decoder layers."""

from dataclasses import dataclass, fields
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import torch.nn.functional as F
from fairseq import utils
from fairseq.modules.fairseq_dropout import FairseqDropout
from omegaconf import II
from torch import nn

from docnmt_fairseq import context  # noqa: F401  (registers the mechanisms)
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, PLACEMENTS, TARGET_MECHANISMS
from docnmt_fairseq.errors import refuse
from docnmt_fairseq.layers.base import FEED_FORWARDS, FeedForward, LayerConfig
from docnmt_fairseq.layers.positions import FAIRSEQ, KINDS, SINUSOIDS, WORD_SCOPES
from docnmt_fairseq.models.extra_sources import ExtraSourceOptions, attended_names
from docnmt_fairseq.models.options import AlternatingOptions, TokenEmbeddingOptions, TrainedViewOptions, flat_options
from docnmt_fairseq.models.transformer.lora import LoRAOptions
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import Choices, default_of, flag_of, option, options_of, plain, problems_of

DEFAULT_COMBINATION = "hierarchical"  # of several sources
NONE = "none"
SWISH = "swish"  # which fairseq's list lacks


@dataclass
class TransformerOptions(TrainedViewOptions, ExtraSourceOptions, TokenEmbeddingOptions, AlternatingOptions):
    """Sizes and regularisation as in fairseq's Transformer, and positions."""

    activation_fn: str = option(
        "relu",
        "activation of the feed-forward",
        names=Choices((*utils.get_available_activation_fns(), SWISH)),
    )
    dropout: float = option(0.1, "dropout probability of sub-layer outputs and embeddings", minimum=0, maximum=1)
    attention_dropout: float = option(0.0, "dropout probability of attention weights", minimum=0, maximum=1)
    activation_dropout: float = option(0.0, "dropout probability inside the feed-forward", minimum=0, maximum=1)
    encoder_embed_dim: int = option(512, "width of the encoder", minimum=1)
    encoder_ffn_embed_dim: int = option(2048, "width of the encoder's feed-forward", minimum=1)
    encoder_layers: int = option(6, "number of encoder layers", minimum=0)
    encoder_attention_heads: int = option(8, "attention heads in the encoder", minimum=1)
    encoder_normalize_before: bool = option(False, "pre-norm: layer norm before each sub-layer of the encoder")
    encoder_layerdrop: float = option(0.0, "probability of dropping a whole encoder layer", minimum=0, maximum=1)
    decoder_embed_dim: int = option(
        II("model.encoder_embed_dim"), "width of the decoder (default: the encoder's)", minimum=1
    )
    decoder_ffn_embed_dim: int = option(
        II("model.encoder_ffn_embed_dim"), "width of the decoder's feed-forward", minimum=1
    )
    decoder_layers: int = option(6, "number of decoder layers", minimum=0)
    decoder_attention_heads: int = option(8, "attention heads in the decoder", minimum=1)
    decoder_normalize_before: bool = option(False, "pre-norm: layer norm before each sub-layer of the decoder")
    decoder_layerdrop: float = option(0.0, "probability of dropping a whole decoder layer", minimum=0, maximum=1)
    decoder_learned_pos: bool = option(False, "learned positions in the decoder instead of sinusoids")
    share_decoder_input_output_embed: bool = option(False, "share the decoder's input and output embeddings")
    share_all_embeddings: bool = option(False, "share all embeddings; needs one joined dictionary")
    layernorm_embedding: bool = option(False, "layer norm after the embeddings")
    no_scale_embedding: bool = option(False, "do not scale embeddings by the square root of their width")
    checkpoint_activations: bool = option(False, "recompute activations in the backward pass to save memory")

    word_positions: str = option("sinusoidal", "positions of words in the encoder", names=Choices(KINDS))
    word_positions_from: str = option(
        "sentence", "count words from the start of the sentence or of the document; a learned table over whole "
        "documents sees few examples of high positions", names=Choices(WORD_SCOPES),
    )  # fmt: skip
    sinusoids: str = option(
        FAIRSEQ, "formula of sinusoidal word positions, in encoder and decoder: fairseq's, or Marian's, which counts "
        "from 0", names=Choices(SINUSOIDS),
    )  # fmt: skip
    decoder_start: str = option(
        "eos", "symbol that the decoder starts with: end of sentence, or padding as in Marian",
        names=Choices(("eos", "pad")),
    )  # fmt: skip
    output_bias: bool = option(False, "add a bias to the logits")
    sentence_positions: str = option("none", "positions of sentences in the document, from 0", names=Choices(KINDS))
    paragraph_positions: str = option("none", "positions of paragraphs in the document, from 0", names=Choices(KINDS))
    section_positions: str = option("none", "positions of sections in the document, from 0", names=Choices(KINDS))
    chapter_positions: str = option("none", "positions of chapters in the document, from 0", names=Choices(KINDS))
    part_positions: str = option("none", "positions of parts in the document, from 0", names=Choices(KINDS))
    max_sentence_positions: int = option(
        256, "size of a learned sentence table; later sentences share its last row", minimum=1
    )
    max_paragraph_positions: int = option(
        64, "size of a learned paragraph table; later paragraphs share its last row", minimum=1
    )
    max_section_positions: int = option(
        64, "size of a learned table of sections, chapters or parts; later ones share its last row", minimum=1
    )

    freeze_sentence_model: bool = option(False, "freeze the sentence-level parameters and train the added ones only")
    context_lr_scale: float = option(
        1.0, "learning rate of added parameters, relative to that of the sentence-level model; above 1 if that one is "
        "already trained", minimum=0,
    )  # fmt: skip


@dataclass
class ContextOptions:
    """Context mechanisms of encoder and decoder, and their positions."""

    context_attention: str = option(NONE, "context mechanism", names=CONTEXT_MECHANISMS, also=(NONE,))
    context_placement: Optional[str] = option(
        None, "block: a residual sub-layer between self-attention and feed-forward; heads: additional heads of the "
        "self-attention; replace: instead of self-attention; gated-attention, gated-feed-forward, gated-output: a gate "
        "between context and self-attention, the feed-forward, or the layer's output (default: the mechanism's own)",
        names=Choices(PLACEMENTS),
    )  # fmt: skip
    context_layers: List[int] = option(
        list, "encoder layers with context, from 0, e.g. 3,4,5 (default: the upper half; gated mechanisms: the last)"
    )  # fmt: skip
    context_heads: int = option(
        0, "heads of the encoder's context mechanism; 0: those of self-attention (placement heads: 1)", minimum=0
    )
    decoder_context_attention: str = option(
        NONE, "context mechanism of target tokens over the source document", names=DECODER_MECHANISMS, also=(NONE,)
    )
    decoder_context_layers: List[int] = option(
        list, "decoder layers with context, from 0, e.g. 3,4,5 (default: the upper half)"
    )
    target_context_attention: str = option(
        NONE, "context mechanism over previous target sentences, with a gate at the end of the decoder; documents are "
        "then translated sentence by sentence", names=TARGET_MECHANISMS, also=(NONE,),
    )  # fmt: skip
    context_init: str = option(
        "zero", "initialisation of added context sub-layers, of the context's share in gated ones and of learned "
        "positions above words: zero starts as the sentence-level model; xavier is the usual one",
        names=Choices(("zero", "xavier")),
    )  # fmt: skip


@dataclass
class AttentionOptions:
    """Attention to the sources: the sentence to translate and ``--extra-sources``."""

    attention_combination: Optional[str] = option(
        None, f"combination of the attentions to all sources (default: {DEFAULT_COMBINATION} with several sources, "
        "fairseq's attention with one)", names=ATTENTION_COMBINATIONS,
    )  # fmt: skip
    combination_attention: str = option(
        "dot-product", "attention to one source in a combination (with one source, flat is this attention itself)",
        names=ATTENTION_SCORES,
    )  # fmt: skip
    share_combination_projections: bool = option(
        False, "flat and hierarchical: energies and context vectors share their projections"
    )
    attention_sentinel: bool = option(False, "flat and hierarchical: add the gated decoder state to the attention")


@dataclass
class FeedForwardOptions:
    """Variants of the feed-forward sub-layers."""

    feed_forward: str = option(
        "standard", "feed-forward of encoder and decoder; ca-nn: gated by an indicator χ of its input, χ v(c) + "
        "(1 - χ) w0; ca-res: a block of such layers", names=FEED_FORWARDS,
    )  # fmt: skip
    encoder_feed_forward: Optional[str] = option(
        None, "feed-forward of the encoder (default: --feed-forward)", names=FEED_FORWARDS
    )
    decoder_feed_forward: Optional[str] = option(
        None, "feed-forward of the decoder (default: --feed-forward)", names=FEED_FORWARDS
    )


@dataclass
class DocumentTransformerOptions(TransformerOptions, ContextOptions, AttentionOptions, FeedForwardOptions, LoRAOptions):
    """All options of the model itself; mechanisms and feed-forwards have their own ``Options``."""


DocumentTransformerConfig = flat_options(
    "DocumentTransformerConfig",
    __name__,
    [DocumentTransformerOptions, *CONTEXT_MECHANISMS.options(), *FEED_FORWARDS.options()],
)


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


def starts_at_identity(cfg: DocumentTransformerOptions) -> bool:
    """True if added parts start without effect, i.e. training starts from the sentence-level model."""
    return plain(cfg.context_init) == "zero"


def feed_forward(cfg: DocumentTransformerOptions, side: str) -> nn.Module:
    """Feed-forward of a layer of the encoder or decoder, with fairseq's dropout (``--retain-dropout``)."""
    variant = FEED_FORWARDS[feed_forward_of(cfg, side)]
    made = variant(layer_config(cfg, side), options_of(cfg, variant.Options))
    for part in made.modules():
        if isinstance(part, FeedForward):
            name = f"Document{side.capitalize()}Layer"
            part.activation_dropout = FairseqDropout(cfg.activation_dropout, module_name=name)
    return made


def feed_forward_of(cfg: DocumentTransformerOptions, side: str) -> str:
    """Name of the feed-forward of the encoder or decoder."""
    return str(plain(getattr(cfg, f"{side}_feed_forward") or cfg.feed_forward))


def context_placement(cfg: DocumentTransformerOptions) -> str:
    """Placement of the encoder's context mechanism."""
    if cfg.context_placement is None and cfg.context_attention != NONE:
        return CONTEXT_MECHANISMS[cfg.context_attention].placements[0]
    return str(plain(cfg.context_placement))


def context_layers(cfg: DocumentTransformerOptions) -> List[int]:
    """Encoder layers with context, ascending."""
    if cfg.context_attention == NONE:
        return []
    top_only = CONTEXT_MECHANISMS[cfg.context_attention].top_layer_only
    default = range(cfg.encoder_layers - 1 if top_only else cfg.encoder_layers // 2, cfg.encoder_layers)
    return sorted(set(cfg.context_layers)) or list(default)


def decoder_context_layers(cfg: DocumentTransformerOptions) -> List[int]:
    """Decoder layers with context, ascending."""
    if cfg.decoder_context_attention == NONE:
        return []
    return sorted(set(cfg.decoder_context_layers)) or list(range(cfg.decoder_layers // 2, cfg.decoder_layers))


def combination_name(cfg: DocumentTransformerOptions) -> Optional[str]:
    """Name of the decoder's attention combination; None: fairseq's attention."""
    return cfg.attention_combination or (DEFAULT_COMBINATION if len(attended_names(cfg)) > 1 else None)


def mechanisms_of(cfg: DocumentTransformerOptions) -> Set[str]:
    """Names of the context mechanisms in use."""
    return {cfg.context_attention, cfg.decoder_context_attention, cfg.target_context_attention} - {NONE}


def ignored_options(cfg: DocumentTransformerOptions) -> Iterator[Tuple[str, Any]]:
    """Flags and values of mechanisms' options that differ from the default and that no mechanism in use reads."""
    read = {known.name for name in mechanisms_of(cfg) for known in fields(CONTEXT_MECHANISMS[name].Options)}
    every = [CONTEXT_MECHANISMS[name].Options for name in CONTEXT_MECHANISMS.names()]
    declared = {known.name: known for options in every for known in fields(options)}
    for name in sorted(declared.keys() - read):
        value = plain(getattr(cfg, name))
        if value != plain(default_of(declared[name])):
            yield flag_of(name), value


def check(cfg: DocumentTransformerOptions) -> None:
    """Checks values and combinations of options.

    Raises:
        InputError: all problems, by their flags.
    """
    refuse([*problems_of(cfg, DocumentTransformerConfig)] or _problems(cfg))


def _problems(cfg: DocumentTransformerOptions) -> Iterator[str]:
    for name in sorted(mechanisms_of(cfg)):
        mechanism = CONTEXT_MECHANISMS[name]
        yield from mechanism.problems(options_of(cfg, mechanism.Options))
    if cfg.context_attention != NONE:
        placements, place = CONTEXT_MECHANISMS[cfg.context_attention].placements, context_placement(cfg)
        if place not in placements:
            wanted = f"must be {' or '.join(placements)} with --context-attention {cfg.context_attention}"
            yield f"--context-placement {place}: {wanted}"
    chosen: Dict[str, List[int]] = {"encoder": cfg.context_layers, "decoder": cfg.decoder_context_layers}
    for side, layers in chosen.items():
        name, count = f"{'' if side == 'encoder' else 'decoder_'}context_layers", getattr(cfg, f"{side}_layers")
        if any(not 0 <= layer < count for layer in layers):
            yield f"{flag_of(name)} {layers}: the {side} has layers 0 to {count - 1}"
        width, heads = getattr(cfg, f"{side}_embed_dim"), getattr(cfg, f"{side}_attention_heads")
        if width % heads:
            yield f"--{side}-embed-dim {width}: must be a multiple of --{side}-attention-heads {heads}"
    heads = cfg.context_heads
    if heads and cfg.context_attention != NONE and context_placement(cfg) != "heads" and cfg.encoder_embed_dim % heads:
        yield f"--context-heads {heads}: must divide --encoder-embed-dim {cfg.encoder_embed_dim}"

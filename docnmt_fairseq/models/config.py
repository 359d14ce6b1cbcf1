"""Options of ``document_transformer``: one flat dataclass, so that the command line and YAML take the same names."""

from dataclasses import dataclass

from fairseq import utils
from fairseq.dataclass import ChoiceEnum
from omegaconf import II

from docnmt_fairseq import modules  # noqa: F401  (registers the mechanisms)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models import feed_forward
from docnmt_fairseq.models.alternating import AlternatingConfig, alternating_problems
from docnmt_fairseq.models.combination_config import (
    AttentionCombinationConfig,
    combination_name,
    combination_problems,
)
from docnmt_fairseq.models.context_config import ContextOptions, context_problems
from docnmt_fairseq.models.further_config import FurtherSourcesConfig, further_problems
from docnmt_fairseq.models.trained_view import TrainedView
from docnmt_fairseq.modules.positions import KINDS, WORD_SCOPES
from docnmt_fairseq.options import option


@dataclass
class DocumentTransformerConfig(
    ContextOptions,
    AttentionCombinationConfig,
    FurtherSourcesConfig,
    feed_forward.FeedForwardConfig,
    AlternatingConfig,
    TrainedView,
):
    """Sizes and regularisation as in fairseq's Transformer, then what looks across sentences."""

    activation_fn: ChoiceEnum(utils.get_available_activation_fns()) = option("relu", "activation of the feed-forward")
    dropout: float = option(0.1, "dropout probability of sub-layer outputs and embeddings")
    attention_dropout: float = option(0.0, "dropout probability of attention weights")
    activation_dropout: float = option(0.0, "dropout probability inside the feed-forward")
    encoder_embed_dim: int = option(512, "width of the encoder")
    encoder_ffn_embed_dim: int = option(2048, "width of the encoder's feed-forward")
    encoder_layers: int = option(6, "encoder layers")
    encoder_attention_heads: int = option(8, "attention heads in the encoder")
    encoder_normalize_before: bool = option(False, "layer norm before each sub-layer of the encoder (pre-norm)")
    encoder_layerdrop: float = option(0.0, "probability of dropping a whole encoder layer")
    decoder_embed_dim: int = option(II("model.encoder_embed_dim"), "width of the decoder (default: the encoder's)")
    decoder_ffn_embed_dim: int = option(II("model.encoder_ffn_embed_dim"), "the same, of the decoder's feed-forward")
    decoder_layers: int = option(6, "decoder layers")
    decoder_attention_heads: int = option(8, "attention heads in the decoder")
    decoder_normalize_before: bool = option(False, "layer norm before each sub-layer of the decoder (pre-norm)")
    decoder_layerdrop: float = option(0.0, "probability of dropping a whole decoder layer")
    decoder_learned_pos: bool = option(False, "learned positions in the decoder instead of sinusoids")
    share_decoder_input_output_embed: bool = option(False, "share the decoder's input and output embeddings")
    share_all_embeddings: bool = option(False, "share all embeddings; needs one joined dictionary")
    layernorm_embedding: bool = option(False, "layer norm after the embeddings")
    no_scale_embedding: bool = option(False, "do not scale embeddings by the square root of their width")
    checkpoint_activations: bool = option(False, "recompute activations in the backward pass: less memory, more time")

    word_positions: ChoiceEnum(KINDS) = option("sinusoidal", "positions of words in the encoder")
    word_positions_from: ChoiceEnum(WORD_SCOPES) = option(
        "sentence", "count words from the start of the sentence or of the document; a learned table over whole "
        "documents sees few examples of high positions"
    )  # fmt: skip
    sentence_positions: ChoiceEnum(KINDS) = option("none", "positions of sentences in the document, from 0")
    paragraph_positions: ChoiceEnum(KINDS) = option("none", "positions of paragraphs in the document, from 0")
    max_sentence_positions: int = option(256, "rows of a learned sentence table; later sentences share the last")
    max_paragraph_positions: int = option(64, "rows of a learned paragraph table; later paragraphs share the last")

    freeze_sentence_model: bool = option(False, "train only what the sentence-level model does not have")


def check(cfg: DocumentTransformerConfig) -> None:
    """Raises one :class:`InputError` that lists every bad value and combination by its option."""
    problems = [
        *further_problems(cfg),
        *combination_problems(cfg),
        *alternating_problems(cfg),
        *context_problems(cfg),
    ]

    def expect(condition: bool, message: str) -> None:
        if not condition:
            problems.append(message)

    for side in ("encoder", "decoder"):
        width, heads = getattr(cfg, f"{side}_embed_dim"), getattr(cfg, f"{side}_attention_heads")
        expect(width % heads == 0, f"--{side}-embed-dim {width} is not a multiple of --{side}-attention-heads {heads}")
    for name in ("max_sentence_positions", "max_paragraph_positions"):
        expect(getattr(cfg, name) >= 1, f"--{name.replace('_', '-')} {getattr(cfg, name)}: must be at least 1")
    without = cfg.context_attention == cfg.decoder_context_attention == cfg.target_context_attention == "none"
    standard = all(feed_forward.kind_of(cfg, side) == "standard" for side in ("encoder", "decoder"))
    expect(
        not (cfg.freeze_sentence_model and without and combination_name(cfg) is None and standard),
        "--freeze-sentence-model leaves nothing to train without --context-attention, --decoder-context-attention, "
        "--target-context-attention, --attention-combination, --further-sources or --feed-forward",
    )
    problems += feed_forward.problems(cfg)
    if problems:
        raise InputError("; ".join(problems))

"""What is wrong with options of ``document_transformer``: each by itself, and combinations."""

import math
from dataclasses import fields
from typing import Dict, Iterator, List

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS
from docnmt_fairseq.errors import refuse
from docnmt_fairseq.layers.feed_forward import FEED_FORWARDS
from docnmt_fairseq.models.extra_sources_config import extra_problems
from docnmt_fairseq.models.transformer.config import (
    NONE,
    AttentionOptions,
    DocumentTransformerConfig,
    DocumentTransformerOptions,
    combination_config,
    combination_name,
    context_layer_config,
    context_placement,
    feed_forward_of,
)
from docnmt_fairseq.models.transformer.lora import lora_problems
from docnmt_fairseq.models.transformer.unused import learned_levels, mechanisms_of, without_effect
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import flag_of, options_of, problems_of, shown


def check(cfg: DocumentTransformerOptions) -> None:
    """Looks for bad values and combinations.

    Raises:
        InputError: bad values and combinations, all of them, by their flags.
    """
    problems = [
        *problems_of(cfg, DocumentTransformerConfig),
        *extra_problems(cfg),
        *_size_problems(cfg),
        *_context_problems(cfg),
        *_combination_problems(cfg),
        *_feed_forward_problems(cfg),
        *lora_problems(cfg),
    ]
    refuse(problems)


def remarks(cfg: DocumentTransformerOptions) -> Iterator[str]:
    """Which options have no effect, and what else ought to be known of them in training."""
    if cfg.context_lr_scale != 1 and _adds_nothing(cfg):
        yield "--context-lr-scale has no effect: the model has nothing but what a sentence-level model has"
    yield from without_effect(cfg)
    for name in mechanisms_of(cfg):
        mechanism = CONTEXT_MECHANISMS[name]
        yield from mechanism.remarks(options_of(cfg, mechanism.Options))


def _size_problems(cfg: DocumentTransformerOptions) -> Iterator[str]:
    for side in ("encoder", "decoder"):
        width, heads = getattr(cfg, f"{side}_embed_dim"), getattr(cfg, f"{side}_attention_heads")
        if heads > 0 and width % heads:
            yield f"--{side}-embed-dim {width} is not a multiple of --{side}-attention-heads {heads}"
    if cfg.freeze_sentence_model and _adds_nothing(cfg):
        yield (
            "--freeze-sentence-model leaves nothing to train without --context-attention, --decoder-context-attention, "
            "--target-context-attention, --attention-combination, --extra-sources, --feed-forward, --lora-rank, "
            "--token-embedding ca-em or learned positions of sentences and what they make up"
        )
    if cfg.context_lr_scale == 0 or not math.isfinite(cfg.context_lr_scale):
        yield f"--context-lr-scale {cfg.context_lr_scale:g}: must be a number above 0"


def _adds_nothing(cfg: DocumentTransformerOptions) -> bool:
    """Whether the model has nothing but what a sentence-level model has."""
    without = cfg.context_attention == cfg.decoder_context_attention == cfg.target_context_attention == NONE
    standard = all(feed_forward_of(cfg, side) == "standard" for side in ("encoder", "decoder"))
    plain = str(cfg.token_embedding) == "plain" and not learned_levels(cfg)
    return without and combination_name(cfg) is None and standard and plain and not cfg.lora_rank > 0


def _context_problems(cfg: DocumentTransformerOptions) -> Iterator[str]:
    for name in mechanisms_of(cfg):
        mechanism = CONTEXT_MECHANISMS[name]
        yield from mechanism.problems(options_of(cfg, mechanism.Options))
    if cfg.context_attention in CONTEXT_MECHANISMS:
        placements, place = CONTEXT_MECHANISMS[cfg.context_attention].placements, context_placement(cfg)
        if place not in placements:
            yield f"--context-placement {place}: {cfg.context_attention} has {', '.join(placements)}"
        yield from _layer_problems("context_layers", cfg.context_layers, "encoder", cfg.encoder_layers)
        heads = max(1, context_layer_config(cfg).heads) if cfg.context_heads >= 0 else 1
        if place != "heads" and cfg.encoder_embed_dim % heads:
            yield f"--context-heads {heads} does not divide --encoder-embed-dim {cfg.encoder_embed_dim}"
    if cfg.decoder_context_attention in DECODER_MECHANISMS:
        yield from _layer_problems("decoder_context_layers", cfg.decoder_context_layers, "decoder", cfg.decoder_layers)


def _layer_problems(name: str, chosen: List[int], side: str, layers: int) -> Iterator[str]:
    outside = [layer for layer in chosen if not 0 <= layer < layers]
    if outside:
        yield f"{flag_of(name)} {outside}: the {side} has layers 0 to {layers - 1}"


def _combination_problems(cfg: DocumentTransformerOptions) -> Iterator[str]:
    name = combination_name(cfg)
    if name is not None:
        if name in ATTENTION_COMBINATIONS and cfg.combination_attention in ATTENTION_SCORES:
            yield from ATTENTION_COMBINATIONS[name].problems(combination_config(cfg))
        return
    for known in fields(AttentionOptions):
        if getattr(cfg, known.name) != known.default:
            yield f"{flag_of(known.name)} needs --attention-combination, or several sources"


def _feed_forward_problems(cfg: DocumentTransformerOptions) -> Iterator[str]:
    kinds = {side: feed_forward_of(cfg, side) for side in ("encoder", "decoder")}
    owners: Dict[str, List[str]] = {}
    for name in FEED_FORWARDS.names():
        for known in fields(FEED_FORWARDS[name].Options):
            if getattr(cfg, known.name) != known.default:
                owners.setdefault(known.name, []).append(name)
    for name, variants in owners.items():
        if not set(variants) & set(kinds.values()):
            yield f"{flag_of(name)} {shown(getattr(cfg, name))}: needs --feed-forward {' or '.join(variants)}"
    for side, kind in kinds.items():
        if kind in FEED_FORWARDS:
            options = options_of(cfg, FEED_FORWARDS[kind].Options)
            yield from FEED_FORWARDS[kind].problems(side, getattr(cfg, f"{side}_ffn_embed_dim"), options)

"""Options of ``document_transformer`` that are given and have no effect, as nothing in the model reads them."""

from dataclasses import fields
from typing import Dict, Iterator, List, Set, Tuple

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER, ENCODER, TARGET
from docnmt_fairseq.layers.positions import ADDED_LEVELS
from docnmt_fairseq.models.extra_sources_config import extra_specs
from docnmt_fairseq.models.transformer.config import NONE, DocumentTransformerConfig, DocumentTransformerOptions
from docnmt_fairseq.options import changed, plain

NO_MECHANISM = "no mechanism of this model has that option"


def mechanism_by_side(cfg: DocumentTransformerOptions) -> Dict[str, str]:
    """The name of the mechanism on each side that has one."""
    sides = {
        ENCODER: cfg.context_attention,
        DECODER: cfg.decoder_context_attention,
        TARGET: cfg.target_context_attention,
    }
    return {side: name for side, name in sides.items() if name in CONTEXT_MECHANISMS}


def mechanisms_of(cfg: DocumentTransformerOptions) -> List[str]:
    """The names of the mechanisms in use, each once."""
    return list(dict.fromkeys(mechanism_by_side(cfg).values()))


def learned_levels(cfg: DocumentTransformerOptions) -> Set[str]:
    """The levels of structure above the words whose positions have a learned table."""
    return {level for level in ADDED_LEVELS if plain(getattr(cfg, f"{level}_positions")) == "learned"}


def without_effect(cfg: DocumentTransformerOptions) -> Iterator[str]:
    """The options that differ from their defaults and that nothing reads, each with the reason."""
    for names, reason in _unread(cfg):
        yield from (f"{given} has no effect: {reason}" for given in changed(cfg, DocumentTransformerConfig, names))


def _unread(cfg: DocumentTransformerOptions) -> Iterator[Tuple[Set[str], str]]:
    """Options that nothing reads, and why."""
    read: Set[str] = set()
    for side, name in mechanism_by_side(cfg).items():
        mechanism = CONTEXT_MECHANISMS[name]
        read |= {one.name for one in fields(mechanism.Options)} - set(mechanism.unread(side))
    known = {one.name for name in CONTEXT_MECHANISMS.names() for one in fields(CONTEXT_MECHANISMS[name].Options)}
    yield known - read, NO_MECHANISM
    if cfg.context_attention == NONE:
        yield {"context_layers", "context_placement", "context_heads"}, "there is no --context-attention"
    for side, name in ((ENCODER, "context_attention"), (DECODER, "decoder_context_attention")):
        if getattr(cfg, f"{side}_layers") == 0:
            yield {name}, f"the {side} has no layers"
    if cfg.decoder_context_attention == NONE:
        yield {"decoder_context_layers"}, "there is no --decoder-context-attention"
    if not extra_specs(cfg):
        yield {"extra_encoder", "extra_encoder_layers", "share_extra_embeddings"}, "there are no --extra-sources"
    if plain(cfg.token_embedding) == "plain":
        yield {"token_chi_dim"}, "--token-embedding is plain"
    learned = learned_levels(cfg)
    for level in ("sentence", "paragraph"):
        if level not in learned:
            yield {f"max_{level}_positions"}, f"--{level}-positions are not learned"
    if not learned - {"sentence", "paragraph"}:
        yield {"max_section_positions"}, "no positions above those of paragraphs are learned"

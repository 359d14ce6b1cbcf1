"""Options of decoders that attend to several sources, or otherwise than fairseq's attention does."""

from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple

from fairseq.dataclass import FairseqDataclass

from docnmt_fairseq import modules  # noqa: F401  (registers the combinations)
from docnmt_fairseq.models.further_config import FurtherSourcesConfig, further_specs
from docnmt_fairseq.modules.attention_combination.contract import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.modules.attention_combination.scores import ATTENTION_SCORES
from docnmt_fairseq.options import option

OF_SEVERAL = "hierarchical"  # where the option leaves it open


@dataclass
class AttentionCombinationConfig(FairseqDataclass):
    """How encoder-decoder attention goes over the sources: the sentence to be translated and ``--further-sources``."""

    attention_combination: Optional[str] = option(
        None,
        f"how target words attend to all sources: {', '.join(ATTENTION_COMBINATIONS.names())} (default: of "
        f"several sources {OF_SEVERAL}, of one fairseq's own attention)",
    )
    combination_attention: str = option(
        "dot-product",
        f"how they attend to one: {', '.join(ATTENTION_SCORES.names())}; only with a combination (flat is "
        "that attention itself where there is one source)",
    )
    share_combination_projections: bool = option(
        False, "flat and hierarchical: make context vectors of the same projections as energies"
    )
    attention_sentinel: bool = option(
        False, "flat and hierarchical: let target words attend to their own state, away from all sources"
    )


OPTIONS = {
    "combination": "--attention-combination",
    "attention": "--combination-attention",
    "heads": "--decoder-attention-heads",
    "share_projections": "--share-combination-projections",
    "sentinel": "--attention-sentinel",
}


def source_names(cfg: FurtherSourcesConfig) -> List[str]:
    """Returns the names of the sources that target words attend to, the main one first."""
    return ["source", *map(str, further_specs(cfg))]


def attended_names(cfg: FurtherSourcesConfig) -> Tuple[str, ...]:
    """Returns the names of what the attention of target words is divided over: the sources, perhaps a sentinel."""
    return (*source_names(cfg), *(["sentinel"] if cfg.attention_sentinel else []))


def combination_name(cfg: AttentionCombinationConfig) -> Optional[str]:
    """Returns which combination the decoder has; None: fairseq's own attention."""
    return cfg.attention_combination or (OF_SEVERAL if len(source_names(cfg)) > 1 else None)


def combination_config(cfg: AttentionCombinationConfig) -> CombinationConfig:
    """Returns what the combination of each layer is built from.

    The evidence of a Transformer's sentinel is the state s_i itself: after self-attention it holds what [L] eq. 4 takes
    from the word before and the state before.
    """
    return CombinationConfig(
        query_dim=cfg.decoder_embed_dim,
        source_dims=(cfg.encoder_embed_dim,) * len(source_names(cfg)),
        output_dim=cfg.decoder_embed_dim,
        attention=cfg.combination_attention,
        score_dim=cfg.decoder_embed_dim,
        heads=cfg.decoder_attention_heads,
        dropout=cfg.attention_dropout,
        share_projections=cfg.share_combination_projections,
        sentinel=cfg.attention_sentinel,
        evidence_dim=cfg.decoder_embed_dim if cfg.attention_sentinel else 0,
    )


def combination_problems(cfg: AttentionCombinationConfig) -> Iterator[str]:
    """Yields what is wrong with these options, each by its name."""
    name, names = combination_name(cfg), ATTENTION_COMBINATIONS.names()
    if name is None:
        used = {
            "attention": cfg.combination_attention != "dot-product",
            "share_projections": cfg.share_combination_projections,
            "sentinel": cfg.attention_sentinel,
        }
        for field_name in (field_name for field_name, is_used in used.items() if is_used):
            yield f"{OPTIONS[field_name]} needs --attention-combination, or several sources"
    elif name not in names:
        yield f"--attention-combination {name}: must be one of {', '.join(names)}"
    else:
        for field_name, message in ATTENTION_COMBINATIONS[name].problems(combination_config(cfg)):
            yield f"{OPTIONS[field_name]}: {message}"

"""Options of models that read extra sources besides the sentence to be translated."""

from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple

from omegaconf import II

from docnmt_fairseq.data.extra_source_specs import SourceSpec, parse_specs
from docnmt_fairseq.models.encoder_outputs import SENTINEL
from docnmt_fairseq.options import Choices, option

SEPARATE, SHARED = "separate", "shared"


@dataclass
class ExtraSourceOptions:
    """What encodes the sources of ``--extra-sources``, an option of the task."""

    extra_encoder: str = option(
        SEPARATE, "who encodes extra sources: separate: an encoder for each, sentence by sentence; shared: the "
        "encoder of the sentences (context sentences are not encoded a second time)",
        names=Choices((SEPARATE, SHARED)),
    )  # fmt: skip
    extra_encoder_layers: int = option(0, "layers of separate encoders; 0: as many as the encoder has", minimum=0)
    share_extra_embeddings: bool = option(
        False, "extra sources take the source's embeddings; a text then needs the source's dictionary",
    )  # fmt: skip
    extra_feature_dims: List[int] = option(
        list, "widths of the sources that are features (default: as the data has them)"
    )
    # What the model was trained with, restored at generation.
    extra_sources: Optional[str] = II("task.extra_sources")


def extra_specs(cfg: ExtraSourceOptions) -> List[SourceSpec]:
    """The model's extra sources."""
    return parse_specs(cfg.extra_sources)


def source_names(cfg: ExtraSourceOptions) -> List[str]:
    """The names of the sources that target tokens attend to, the main one first."""
    return ["source", *map(str, extra_specs(cfg))]


def attended_names(cfg: ExtraSourceOptions, sentinel: bool) -> Tuple[str, ...]:
    """The names of what attention is divided over: the sources, perhaps a sentinel."""
    return (*source_names(cfg), *([SENTINEL] if sentinel else []))


def extra_problems(cfg: ExtraSourceOptions) -> Iterator[str]:
    """What is wrong with these options, each by its flag."""
    layers, features = cfg.extra_encoder_layers, sum(spec.kind == "features" for spec in extra_specs(cfg))
    if layers > 0 and str(cfg.extra_encoder) == SHARED:
        yield f"--extra-encoder-layers {layers}: a shared encoder has its own number"
    widths = cfg.extra_feature_dims
    if widths and (len(widths) != features or min(widths) < 1):
        yield f"--extra-feature-dims {widths}: must be {features} positive widths, one for each source of features"

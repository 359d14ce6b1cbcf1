"""Options of models that read further sources besides the sentence to be translated."""

from dataclasses import dataclass, field
from typing import Iterator, List, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from docnmt_fairseq.data.source_specs import SourceSpec, parse_specs
from docnmt_fairseq.options import option

SEPARATE, SHARED = "separate", "shared"


@dataclass
class FurtherSourcesConfig(FairseqDataclass):
    """What reads the sources of ``--further-sources``, an option of the task."""

    further_encoder: ChoiceEnum((SEPARATE, SHARED)) = option(
        SEPARATE,
        "who reads further sources: separate: an encoder for each, sentence by sentence; shared: the "
        "encoder of the sentences (context sentences are not encoded a second time)",
    )
    further_encoder_layers: int = option(0, "layers of separate encoders; 0: as many as the encoder has")
    share_further_embeddings: bool = option(
        False, "further sources take the source's embeddings; a text then needs the source's dictionary"
    )
    further_feature_dims: List[int] = field(
        default_factory=list,
        metadata={"help": "widths of the sources that are features (default: as the data has them)"},
    )
    # What the model was trained with, restored at generation.
    further_sources: Optional[str] = II("task.further_sources")


def further_specs(cfg: FurtherSourcesConfig) -> List[SourceSpec]:
    """Returns the model's further sources."""
    return parse_specs(cfg.further_sources)


def further_problems(cfg: FurtherSourcesConfig) -> Iterator[str]:
    """Yields what is wrong with these options, each by its name."""
    layers, features = cfg.further_encoder_layers, sum(spec.kind == "features" for spec in further_specs(cfg))
    if layers < 0:
        yield f"--further-encoder-layers {layers}: must not be negative"
    if layers and str(cfg.further_encoder) == SHARED:
        yield f"--further-encoder-layers {layers}: a shared encoder has its own number"
    widths = cfg.further_feature_dims
    if widths and (len(widths) != features or min(widths) < 1):
        yield f"--further-feature-dims {widths}: must be {features} positive widths, one for each source of features"

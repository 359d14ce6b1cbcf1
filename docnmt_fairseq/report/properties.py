"""What people want to know of a model."""

from typing import Dict

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.models.extra_sources import attended_names
from docnmt_fairseq.models.transformer.config import combination_name, feed_forward_of


def model_properties(ensemble: Ensemble) -> Dict[str, str]:
    """What people want to know of the model first."""
    cfg = ensemble.model.encoder.document_cfg
    properties = {
        "checkpoint": ensemble.paths[0].name,
        "architecture": str(getattr(cfg, "_name", None) or getattr(cfg, "arch", "")),
    }
    for option in ("context_attention", "decoder_context_attention", "target_context_attention"):
        if getattr(cfg, option, "none") != "none":
            properties[option.replace("_", " ")] = str(getattr(cfg, option))
    for side in ("encoder", "decoder"):
        if hasattr(cfg, f"{side}_cell"):
            properties[f"{side} cell"] = getattr(cfg, f"{side}_cell")
        elif feed_forward_of(cfg, side) != "standard":
            properties[f"{side} feed-forward"] = feed_forward_of(cfg, side)
    attended = attended_names(cfg, cfg.attention_sentinel)
    if len(attended) > 1:
        properties["attention goes to"] = ", ".join(attended)
        properties["combined by"] = str(combination_name(cfg))
    if properties.get("context attention") in ("conditional", "tree"):
        properties["sentences kept"] = str(cfg.context_top_t or "all")
    return properties

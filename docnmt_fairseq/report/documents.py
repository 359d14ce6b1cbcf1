"""Model of a report, its properties, and its documents."""

from typing import Dict, Sequence

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.text_codec import token_ids
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.base import takes_layout
from docnmt_fairseq.models.extra_sources import attended_names
from docnmt_fairseq.models.transformer.config import combination_name, feed_forward_of
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask


def check_model(ensemble: Ensemble) -> None:
    """Raises :class:`InputError` for models that reports do not support."""
    if not isinstance(ensemble.task, DocumentTranslationTask) or not takes_layout(ensemble.model):
        name = f"{type(ensemble.model).__name__} of task {type(ensemble.task).__name__}"
        raise InputError(f"--path {ensemble.paths[0]}: {name}; reports need a document_transformer or document_rnn")


def load_split(ensemble: Ensemble, split: str) -> DocumentDataset:
    """Loads a split of the data-bin."""
    ensemble.task.load_dataset(split)
    return ensemble.task.dataset(split)


def dataset_of_lines(ensemble: Ensemble, lines: Sequence[str], name: str) -> DocumentDataset:
    """Delimited lines of tokens as documents, divided into pieces as in training.

    Args:
        ensemble: model.
        lines: delimited text.
        name: name of the text, for messages.

    Raises:
        InputError: no sentence, or a model that needs more than text.
    """
    dataset: DocumentDataset = ensemble.task.documents_in_memory(token_ids(lines, ensemble.dictionaries[0]))
    if not len(dataset):
        raise InputError(f"{name}: no sentences")
    dataset.name = name
    return dataset


def model_properties(ensemble: Ensemble) -> Dict[str, str]:
    """Main properties of the model, by name."""
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

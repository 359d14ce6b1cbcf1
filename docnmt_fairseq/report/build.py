"""Composition of a report."""

from html import escape
from typing import Dict, List, Tuple

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.base import takes_layout
from docnmt_fairseq.models.extra_sources import attended_names
from docnmt_fairseq.models.transformer.config import combination_name, feed_forward_of
from docnmt_fairseq.report import ReportOptions, agreement, context_free, results, scat, sources
from docnmt_fairseq.report.inspection import dataset_of_lines, inspect
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.views import views_of
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask
from docnmt_fairseq.translate.loading import load_viewing
from docnmt_fairseq.translate.view import DocumentView

Section = Tuple[str, str, str]  # anchor, heading, HTML


def build_page(options: ReportOptions, view: DocumentView = DocumentView()) -> Page:
    """Translates the document and builds the page; also draws the picture of ``source_weights``.

    Raises:
        InputError: invalid files or numbers.
    """
    sections: List[Section] = []
    if options.results:
        content = "".join(f"<h3>{escape(path.name)}</h3>{results.scores_section(path)}" for path in options.results)
        sections.append(("scores", "Scores", content))
    ensemble = load_viewing(options.path, data=options.data, view=view)
    if not isinstance(ensemble.task, DocumentTranslationTask) or not takes_layout(ensemble.model):
        name = f"{type(ensemble.model).__name__} of task {type(ensemble.task).__name__}"
        raise InputError(f"--path {options.path}: {name}; reports need a document_transformer or document_rnn")
    codec = TextCodec(ensemble.data, options.tokenized)
    if options.scat is not None:
        examples = scat.read_scat(options.scat, *ensemble.languages)
        found = agreement.section(examples, agreement.measure(ensemble, examples, codec))
        sections.append(("scat", "Highlighted context", found))
    if options.log is not None:
        sections.append(("training", "Training", results.curves_section(results.read_curves(options.log))))
    lines = None
    if options.input is None:
        ensemble.task.load_dataset(options.split)
        dataset = ensemble.task.dataset(options.split)
    else:
        lines = codec.encode_lines(0, list(read_lines(options.input)))
        dataset = dataset_of_lines(ensemble, lines, f"--input {options.input}")
    inspection = inspect(ensemble, dataset, options.document - 1, options.beam, lines=lines)
    shares = sources.shares_of(ensemble.model, inspection)
    if shares is not None:
        sections.append(("sources", "Sources", sources.section(shares, inspection)))
    if options.source_weights is not None:
        sources.draw(options.source_weights, shares, inspection, options.sentence)
    layers = context_free.indicators_of(ensemble.model, inspection)
    if layers:
        sections.append(("context-free", "Context-free words", context_free.section(layers, inspection)))
    properties = {
        **model_properties(ensemble),
        "sentences": str(len(inspection.sentences)),
        "source tokens": str(sum(len(sentence.source) for sentence in inspection.sentences)),
        "document": f"{options.document} of {options.input.name if options.input else options.split}",
        "beam": str(options.beam),
    }
    title = f"{options.path.absolute().parent.name}: document {options.document}"
    return Page(title, properties, inspection, views_of(ensemble.model, inspection), sections)


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

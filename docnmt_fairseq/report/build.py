"""Gathers what the command line asks for into a page."""

import argparse
from html import escape
from typing import Dict

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.loading import TextCodec
from docnmt_fairseq.models.combination_config import attended_names, combination_name
from docnmt_fairseq.models.feed_forward import kind_of
from docnmt_fairseq.report import agreement, context_free, results, scat, sources, training
from docnmt_fairseq.report.inspection import Inspection, inspect
from docnmt_fairseq.report.loading import Trained, dataset_of, load_trained, read_text, split_of
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.views import views_of


def build_page(args: argparse.Namespace) -> Page:
    """Returns the page; see ``docnmt report --help`` for the arguments.

    Raises:
        InputError: a file or number that does not fit.
    """
    if args.beam < 1:
        raise InputError(f"--beam {args.beam}: must be at least 1")
    if args.sentence is not None and args.source_weights is None:
        raise InputError(f"--sentence {args.sentence}: needs --source-weights")
    sections = []
    if args.results:
        content = "".join(f"<h3>{escape(path.name)}</h3>{results.section(path)}" for path in args.results)
        sections.append(("scores", "Scores", content))
    trained, codec = load_trained(args.path, args.data), TextCodec(args.data, args.tokenized)
    if args.scat is not None:
        examples = scat.read_scat(args.scat, trained.task.cfg.source_lang, trained.task.cfg.target_lang)
        found = agreement.section(examples, agreement.measure(trained, examples, codec))
        sections.append(("scat", "Highlighted context", found))
    if args.log is not None:
        sections.append(("training", "Training", training.section(training.read_log(args.log))))
    if args.input is None:
        dataset = split_of(trained, args.split)
    else:
        dataset = dataset_of(trained, read_text(args.input, codec), f"--input {args.input}")
    inspection = inspect(trained, dataset, args.document - 1, args.beam)
    views = views_of(trained.model, inspection)
    shares = sources.shares_of(trained.model, inspection)
    if shares is not None:
        sections.append(("sources", "Sources", sources.section(shares, inspection)))
    if args.source_weights is not None:
        sources.draw(args.source_weights, shares, inspection, args.sentence)
    layers = context_free.indicators_of(trained.model, inspection)
    if layers:
        sections.append(("context-free", "Context-free words", context_free.section(layers, inspection)))
    facts = facts_of(trained, inspection)
    facts["document"] = f"{args.document} of {args.input.name if args.input else args.split}"
    facts["beam"] = str(args.beam)
    title = f"{trained.path.absolute().parent.name}: document {args.document}"
    return Page(title, facts, inspection, views, sections)


def facts_of(trained: Trained, inspection: Inspection) -> Dict[str, str]:
    """Returns what a reader wants to know of the model first."""
    cfg = trained.model.encoder.document_cfg
    facts = {
        "checkpoint": trained.path.name,
        "architecture": str(getattr(cfg, "_name", None) or getattr(cfg, "arch", "")),
    }
    for option in ("context_attention", "decoder_context_attention", "target_context_attention"):
        if getattr(cfg, option, "none") != "none":
            facts[option.replace("_", " ")] = str(getattr(cfg, option))
    for side in ("encoder", "decoder"):
        if hasattr(cfg, f"{side}_cell"):
            facts[f"{side} cell"] = getattr(cfg, f"{side}_cell")
        elif kind_of(cfg, side) != "standard":
            facts[f"{side} feed-forward"] = kind_of(cfg, side)
    if len(attended_names(cfg)) > 1:
        facts["attention goes to"] = ", ".join(attended_names(cfg))
        facts["combined by"] = combination_name(cfg)
    if facts.get("context attention") in ("conditional", "tree"):
        facts["sentences kept"] = str(cfg.context_top_t or "all")
    facts["sentences"] = str(len(inspection.sentences))
    facts["source tokens"] = str(sum(len(sentence.source) for sentence in inspection.sentences))
    return facts

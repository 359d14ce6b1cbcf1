"""Composition of a report."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.report import agreement, context_free, results, scat, sources
from docnmt_fairseq.report.documents import check_model, dataset_of_lines, load_split, model_properties
from docnmt_fairseq.report.inspection import inspect
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.views import views_of
from docnmt_fairseq.translate.loading import load_viewing
from docnmt_fairseq.translate.view import DocumentView

Section = Tuple[str, str, str]  # anchor, heading, HTML


@dataclass(frozen=True)
class ReportOptions:
    """Options of ``docnmt report``; see its help."""

    path: Path
    data: Path
    split: str = "test"
    document: int = 1
    input: Optional[Path] = None
    tokenized: bool = False
    beam: int = 4
    results: Sequence[Path] = ()
    scat: Optional[Path] = None
    log: Optional[Path] = None
    source_weights: Optional[Path] = None
    sentence: Optional[int] = None
    view: DocumentView = DocumentView()


def build_page(options: ReportOptions) -> Page:
    """Translates the document and builds the page; also draws the picture of ``source_weights``.

    Raises:
        InputError: invalid files or numbers.
    """
    if options.beam < 1:
        raise InputError(f"--beam {options.beam}: must be at least 1")
    sections: List[Section] = []
    if options.results:
        content = "".join(f"<h3>{escape(path.name)}</h3>{results.scores_section(path)}" for path in options.results)
        sections.append(("scores", "Scores", content))
    ensemble = load_viewing(options.path, data=options.data, view=options.view)
    check_model(ensemble)
    codec = TextCodec(ensemble.data, options.tokenized)
    if options.scat is not None:
        examples = scat.read_scat(options.scat, *ensemble.languages)
        found = agreement.section(examples, agreement.measure(ensemble, examples, codec))
        sections.append(("scat", "Highlighted context", found))
    if options.log is not None:
        sections.append(("training", "Training", results.curves_section(results.read_curves(options.log))))
    inspection = inspect(ensemble, _dataset(options, ensemble, codec), options.document - 1, options.beam)
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


def _dataset(options: ReportOptions, ensemble: Ensemble, codec: TextCodec) -> DocumentDataset:
    if options.input is None:
        return load_split(ensemble, options.split)
    lines = codec.encode_lines(0, list(read_lines(options.input)))
    return dataset_of_lines(ensemble, lines, f"--input {options.input}")

"""Gathers what a report is asked to show into a page."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.data.dataset import DocumentDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.report import agreement, context_free, results, scat, sources, training
from docnmt_fairseq.report.documents import check_model, dataset_of_lines, load_split
from docnmt_fairseq.report.inspection import Inspection, inspect
from docnmt_fairseq.report.page import Page
from docnmt_fairseq.report.properties import model_properties
from docnmt_fairseq.report.views import views_of
from docnmt_fairseq.translate.loading import load_viewing
from docnmt_fairseq.translate.view import DocumentView

Section = Tuple[str, str, str]  # anchor, heading, HTML


@dataclass(frozen=True)
class ReportOptions:
    """The model and the document of a report, and what it shows; see ``docnmt report --help``."""

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

    def check(self) -> None:
        """Does nothing if the options fit together.

        Raises:
            InputError: they do not.
        """
        if self.beam < 1:
            raise InputError(f"--beam {self.beam}: must be at least 1")
        if self.sentence is not None and self.source_weights is None:
            raise InputError(f"--sentence {self.sentence}: needs --source-weights")


def build_page(options: ReportOptions) -> Page:
    """Translates the document and makes the page; draws the picture of ``source_weights``, too.

    Raises:
        InputError: a file or number that does not fit.
    """
    options.check()
    sections: List[Section] = []
    if options.results:
        content = "".join(f"<h3>{escape(path.name)}</h3>{results.section(path)}" for path in options.results)
        sections.append(("scores", "Scores", content))
    ensemble = load_viewing(options.path, data=options.data, view=options.view)
    check_model(ensemble)
    codec = TextCodec(ensemble.data, options.tokenized)
    if options.scat is not None:
        examples = scat.read_scat(options.scat, *ensemble.languages)
        found = agreement.section(examples, agreement.measure(ensemble, examples, codec))
        sections.append(("scat", "Highlighted context", found))
    if options.log is not None:
        sections.append(("training", "Training", training.section(training.read_log(options.log))))
    inspection = inspect(ensemble, _dataset(options, ensemble, codec), options.document - 1, options.beam)
    sections += _sections_of_document(options, ensemble, inspection)
    properties = model_properties(ensemble)
    properties["sentences"] = str(len(inspection.sentences))
    properties["source tokens"] = str(sum(len(sentence.source) for sentence in inspection.sentences))
    properties["document"] = f"{options.document} of {options.input.name if options.input else options.split}"
    properties["beam"] = str(options.beam)
    title = f"{options.path.absolute().parent.name}: document {options.document}"
    return Page(title, properties, inspection, views_of(ensemble.model, inspection), sections)


def _dataset(options: ReportOptions, ensemble: Ensemble, codec: TextCodec) -> DocumentDataset:
    if options.input is None:
        return load_split(ensemble, options.split)
    lines = codec.encode_lines(0, list(read_lines(options.input)))
    return dataset_of_lines(ensemble, lines, f"--input {options.input}")


def _sections_of_document(options: ReportOptions, ensemble: Ensemble, inspection: Inspection) -> List[Section]:
    sections: List[Section] = []
    shares = sources.shares_of(ensemble.model, inspection)
    if shares is not None:
        sections.append(("sources", "Sources", sources.section(shares, inspection)))
    if options.source_weights is not None:
        sources.draw(options.source_weights, shares, inspection, options.sentence)
    layers = context_free.indicators_of(ensemble.model, inspection)
    if layers:
        sections.append(("context-free", "Context-free words", context_free.section(layers, inspection)))
    return sections

"""COMET and doc-COMET; the package unbabel-comet is optional.

doc-COMET (Vernikos et al. 2022, "Embarrassingly easy document-level MT metrics") encodes each sentence after the
preceding sentences of its document, and scores the sentence alone.
"""

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Dict, List, Sequence

from docnmt_fairseq.errors import InputError, needs_extra
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream
from docnmt_fairseq.options import Choices, option

CONTEXT_FROM = Choices(("reference", "hypothesis"))


@dataclass(frozen=True)
class CometOptions(MetricOptions):
    """Options of COMET."""

    comet: str = option("", "name of a model, or its checkpoint; requires --source", metavar="MODEL")
    comet_context: int = option(
        0, "doc-COMET: number of preceding sentences, e.g. 2; inputs are truncated to the encoder's length", minimum=0
    )
    comet_context_from: str = option(
        "reference",
        "preceding sentences of a translation; Vernikos et al. 2022 use the reference's",
        names=CONTEXT_FROM,
    )
    comet_batch_size: int = option(16, "sentences per batch", minimum=1)
    gpus: int = option(0, "number of GPUs", minimum=0)


@METRICS.register("comet")
class Comet(Metric):
    """Mean score of the sentences by a neural model, from source, translation and first reference."""

    title = "COMET"
    help = "with --comet MODEL (pip install 'docnmt_fairseq[comet]')"
    Options = CometOptions
    options: CometOptions
    enabled_by = "comet"
    decimals = 4
    scores_documents = False
    needs_source = True

    def __init__(self, test_set: References, options: CometOptions):
        if options.comet_context:
            self.title = "doc-COMET"
        super().__init__(test_set, options)
        self.model = load_model(options)

    def statistics(self, translation: Stream) -> Statistics:
        """Score and 1 for each sentence."""
        options, source, reference = self.options, self.test_set.source or [], self.test_set.streams[0]
        separator = self.model.encoder.tokenizer.sep_token
        sides = {
            "src": (source, source),
            "mt": (translation, reference if options.comet_context_from == "reference" else translation),
            "ref": (reference, reference),
        }
        texts = {key: with_context(*side, options.comet_context, separator) for key, side in sides.items()}
        samples = [dict(zip(texts, of_sentence)) for of_sentence in zip(*texts.values())]
        found = self.model.predict(
            samples, batch_size=options.comet_batch_size, gpus=options.gpus, progress_bar=sys.stderr.isatty()
        )
        return [[float(score), 1.0] for score in found.scores]

    def score(self, sums: Sequence[float]) -> float:
        """Mean of the sentences."""
        return sums[0] / sums[1]

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature with the model, its context and the version of COMET."""
        try:
            installed = version("unbabel-comet")
        except PackageNotFoundError:
            installed = "unknown"
        about: Dict[str, object] = {"model": self.options.comet, "context": self.options.comet_context}
        if self.options.comet_context:
            about["context-from"] = self.options.comet_context_from
        about.update(ref=f"1 of {len(self.test_set.streams)}", version=installed)
        return "|".join(f"{name}:{value}" for name, value in {**about, **details}.items())


def load_model(options: CometOptions) -> Any:
    """Loads the model, downloading a published one.

    Raises:
        InputError: the package is missing, or the model does not support context.
    """
    with needs_extra("comet", "--comet"):
        from comet import download_model, load_from_checkpoint
    path = options.comet if Path(options.comet).is_file() else download_model(options.comet)
    model = load_from_checkpoint(path)
    if options.comet_context:
        model.enable_context()
        if not model.use_context:  # COMET supports it for average pooling only
            raise InputError(f"--comet-context: not supported by {options.comet} (its pooling is not the average)")
    return model


def with_context(sentences: Stream, context: Stream, size: int, separator: str) -> List[str]:
    """All sentences, each preceded by up to ``size`` previous sentences of its document.

    Args:
        sentences: by document.
        context: documents from which previous sentences are taken.
        size: maximum number of previous sentences.
        separator: between sentences; COMET scores the text after the last one.
    """
    return [
        f" {separator} ".join([*previous[max(0, i - size) : i], sentence])
        for document, previous in zip(sentences, context)
        for i, sentence in enumerate(document)
    ]

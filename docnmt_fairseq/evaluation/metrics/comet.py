"""COMET, sentence by sentence or with previous sentences as context (doc-COMET); the package is optional.

The context variant is that of Vernikos et al. (2022), "Embarrassingly easy document-level MT metrics": a sentence is
scored as it is, but encoded behind the sentences before it in its document.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream
from docnmt_fairseq.options import Choices, option

CONTEXT_FROM = Choices(("reference", "hypothesis"))


@dataclass(frozen=True)
class CometOptions(MetricOptions):
    """Which model, and what it sees."""

    comet: Optional[str] = option(None, "name of a model, or its checkpoint; give --source, too", metavar="MODEL")
    comet_context: int = option(
        0, "doc-COMET: previous sentences that it sees, e.g. 2. Few: what exceeds its encoder is cut", minimum=0
    )
    comet_context_from: str = option(
        "reference",
        "whose previous sentences a translation gets; Vernikos et al. 2022 take the reference's",
        names=CONTEXT_FROM,
    )
    comet_batch_size: int = option(16, "sentences", minimum=1)
    gpus: int = option(0, "for the model", minimum=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.comet is None and self.comet_context:
            raise InputError("--comet-context: needs --comet")


@METRICS.register("comet")
class Comet(Metric):
    """A neural model's scores of sentences beside source and reference; the system's score is their mean.

    It reads one reference, the first.
    """

    title = "COMET"
    help = "with --comet MODEL (pip install 'docnmt_fairseq[comet]')"
    Options = CometOptions
    options: CometOptions
    asked_by = "comet"
    decimals = 4
    joins_documents = False
    needs_source = True

    def __init__(self, test_set: References, options: CometOptions):
        if options.comet_context:
            self.title = "doc-COMET"
        super().__init__(test_set, options)
        self.model = load_model(options)

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """The score of each sentence, and 1, of which there are as many as sentences."""
        return [[[score, 1.0] for score in self._sentence_scores(one)] for one in translations]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return sums[0] / sums[1]

    def signed(self, details: Dict[str, object]) -> str:
        """See :meth:`Metric.signed`; details stand behind what identifies the metric."""
        about: Dict[str, object] = {"model": self.options.comet, "context": self.options.comet_context}
        if self.options.comet_context:
            about["context-from"] = self.options.comet_context_from
        about.update(ref=f"1 of {len(self.test_set.streams)}", version=_version())
        return "|".join(f"{name}:{value}" for name, value in {**about, **details}.items())

    def _sentence_scores(self, translation: Stream) -> List[float]:
        options, source, reference = self.options, self.test_set.source or [], self.test_set.streams[0]
        separator = self.model.encoder.tokenizer.sep_token
        sides: Dict[str, List[str]] = {
            key: with_context(sentences, context, options.comet_context, separator)
            for key, sentences, context in (
                ("src", source, source),
                ("mt", translation, reference if options.comet_context_from == "reference" else translation),
                ("ref", reference, reference),
            )
        }
        samples = [dict(zip(sides, texts)) for texts in zip(*sides.values())]
        found = self.model.predict(samples, batch_size=options.comet_batch_size, gpus=options.gpus, progress_bar=False)
        return [float(score) for score in found.scores]


def load_model(options: CometOptions) -> Any:
    """Loads the model, ready to see context if it is to; a published one is downloaded.

    Raises:
        InputError: no model is named, the package is missing, or the model cannot be had or cannot use context.
    """
    if options.comet is None:
        raise InputError("--metrics comet: which model? Give --comet MODEL")
    try:
        from comet import download_model, load_from_checkpoint
    except ImportError as error:
        raise InputError(
            f"--comet needs the package unbabel-comet ({error}); pip install 'docnmt_fairseq[comet]', in an "
            "environment of its own if its versions do not go with yours"
        ) from error
    try:
        path = options.comet if Path(options.comet).is_file() else download_model(options.comet)
        model = load_from_checkpoint(path)
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise InputError(f"--comet {options.comet}: cannot be loaded: {error}") from error
    if options.comet_context:
        model.enable_context()
        if not model.use_context:  # COMET leaves it off where a model's pooling does not allow it
            raise InputError(f"--comet-context: {options.comet} cannot use context (its pooling is not the average)")
    return model


def with_context(sentences: Stream, context: Stream, size: int, separator: str) -> List[str]:
    """All sentences, each behind at most ``size`` sentences that precede it in its document.

    Args:
        sentences: by document.
        context: where preceding sentences are taken from: as many documents of as many sentences.
        size: at most so many.
        separator: between them; COMET scores what stands behind the last.
    """
    return [
        f" {separator} ".join([*before[max(0, i - size) : i], sentence])
        for document, before in zip(sentences, context)
        for i, sentence in enumerate(document)
    ]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("unbabel-comet")
    except PackageNotFoundError:
        return "unknown"

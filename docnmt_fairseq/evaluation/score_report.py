"""Scores of several systems on one test set, by metric and level, and what tests say of their differences."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.evaluation.comet import CometOptions, comet_scores, comet_signature
from docnmt_fairseq.evaluation.metrics import MetricOptions, Stream, make_metric, segments, signature_of
from docnmt_fairseq.evaluation.significance import (
    DEFAULT_SAMPLES,
    DOCUMENTS,
    SEED,
    Outcome,
    check_resampling,
    compare_documents,
    compare_segments,
    sums_by_document,
)
from docnmt_fairseq.evaluation.texts import References


@dataclass(frozen=True)
class ScoreOptions:
    """What to compute.

    Attributes:
        metrics: some of ``METRICS``.
        levels: some of ``LEVELS``.
        metric: what the metrics are told.
        tests: some of ``TESTS``.
        samples: of each test; None for its default.
        seed: of all tests.
        comet: None to leave it out.
    """

    metrics: Tuple[str, ...] = ("bleu", "chrf")
    levels: Tuple[str, ...] = ("sentence", "document")
    metric: MetricOptions = MetricOptions()
    tests: Tuple[str, ...] = ()
    samples: Optional[int] = None
    seed: int = SEED
    comet: Optional[CometOptions] = None


@dataclass(frozen=True)
class Comparison:
    """One test of one column; outcomes by system, the baseline first."""

    samples: int
    signature: str
    outcomes: Dict[str, Outcome]


@dataclass(frozen=True)
class Column:
    """One metric on one level.

    Attributes:
        name: as in tables, "d-" before it on the level of documents.
        level: "sentence" or "document".
        signature: what makes it reproducible.
        scores: by system.
        comparisons: by test.
        digits: after the decimal point, in tables.
    """

    name: str
    level: str
    signature: str
    scores: Dict[str, float]
    comparisons: Dict[str, Comparison] = field(default_factory=dict)
    digits: int = 2

    @property
    def lower_is_better(self) -> bool:
        """Whether it counts errors."""
        return self.name.endswith("TER")


@dataclass(frozen=True)
class ScoreReport:
    """Everything; the first system is the baseline of the tests.

    ``empty`` counts the empty translations by system.
    """

    references: Tuple[Path, ...]
    documents: int
    sentences: int
    empty: Dict[str, int]
    columns: List[Column]
    seed: int

    @property
    def systems(self) -> List[str]:
        """Their names."""
        return list(self.empty)

    def to_json(self) -> Dict[str, Any]:
        """Returns every figure, unrounded, as plain values."""
        return {
            "docnmt_fairseq": __version__,
            "references": list(map(str, self.references)),
            "documents": self.documents,
            "sentences": self.sentences,
            "empty_translations": self.empty,
            "baseline": self.systems[0],
            "seed": self.seed,
            "scores": [
                {
                    "metric": column.name,
                    "level": column.level,
                    "signature": column.signature,
                    "lower_is_better": column.lower_is_better,
                    "systems": column.scores,
                    "tests": {name: asdict(comparison) for name, comparison in column.comparisons.items()},
                }
                for column in self.columns
            ],
        }


def build_report(
    references: References, systems: Mapping[str, Stream], options: ScoreOptions, comet_model: Any = None
) -> ScoreReport:
    """Returns the scores of the systems.

    Args:
        references: of the test set; with its source for COMET.
        systems: the translations by name, the baseline first.
        options: what to compute.
        comet_model: for ``options.comet``, from ``load_model``.

    Raises:
        InputError: an unknown tokeniser, or tests that cannot be made on this test set.
    """
    documents, sentences = references.documents, references.sentences
    check_resampling(options.tests, options.levels, options.samples, options.seed, documents, sentences)
    columns = [
        _column(name, level, references, systems, options) for level in options.levels for name in options.metrics
    ]
    if options.comet:
        columns.append(_comet_column(comet_model, references, systems, options, options.comet))
    empty = {name: sum(not sentence for text in stream for sentence in text) for name, stream in systems.items()}
    return ScoreReport(references.files, documents, sentences, empty, columns, options.seed)


def _column(
    name: str, level: str, references: References, systems: Mapping[str, Stream], options: ScoreOptions
) -> Column:
    metric = make_metric(name, options.metric, [segments(stream, level) for stream in references.streams])
    texts = {system: segments(stream, level) for system, stream in systems.items()}
    # sacrebleu's corpus_score is these two steps; the statistics in between are needed again.
    statistics = {system: metric._extract_corpus_statistics(text, None) for system, text in texts.items()}
    scores = {system: metric._aggregate_and_compute(rows) for system, rows in statistics.items()}
    comparisons = {}
    for test in options.tests:
        samples = options.samples or DEFAULT_SAMPLES[test]
        if test == DOCUMENTS:
            counts = [1] * references.documents if level == "document" else list(map(len, references.lines))
            sums = {system: sums_by_document(rows, counts) for system, rows in statistics.items()}
            outcomes = compare_documents(
                sums, lambda row: metric._compute_score_from_stats(row).score, samples, options.seed
            )
            signature = metric.get_signature()
            for key, value in (("bs", samples), ("seed", options.seed), ("resampled", "documents")):
                signature.update(key, value)
        else:
            outcomes, signature = compare_segments(test, texts, metric, samples, options.seed)
        comparisons[test] = Comparison(samples, signature_of(signature, level), outcomes)
    prefix = "d-" if level == "document" else ""
    title = prefix + ("HTER" if name == "hter" else next(iter(scores.values())).name)
    values = {system: score.score for system, score in scores.items()}
    return Column(title, level, signature_of(metric.get_signature(), level), values, comparisons)


def _comet_column(
    model: Any, references: References, systems: Mapping[str, Stream], options: ScoreOptions, comet: CometOptions
) -> Column:
    """Returns COMET's column; of the tests it has the one over documents."""
    signature = comet_signature(comet, references)
    counts = list(map(len, references.lines))
    found = {system: comet_scores(model, stream, references, comet) for system, stream in systems.items()}
    scores = {system: sum(values) / len(values) for system, values in found.items()}
    comparisons = {}
    if DOCUMENTS in options.tests:
        samples = options.samples or DEFAULT_SAMPLES[DOCUMENTS]
        sums = {name: sums_by_document([(value, 1) for value in values], counts) for name, values in found.items()}
        outcomes = compare_documents(sums, lambda row: row[0] / row[1], samples, options.seed)
        tested = f"{signature}|bs:{samples}|seed:{options.seed}|resampled:documents"
        comparisons[DOCUMENTS] = Comparison(samples, tested, outcomes)
    return Column(comet.name, "sentence", signature, scores, comparisons, digits=4)

"""Scores of several systems on one test set, by metric and level, and what tests say of their differences."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.significance import SEED, TESTS, Comparison, check_resampling
from docnmt_fairseq.evaluation.texts import LEVELS, References, Stream, at_level

DEFAULT_METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class ScoreOptions:
    """What to compute.

    Attributes:
        metrics: some of ``METRICS``, with what each is told.
        levels: some of ``LEVELS``.
        tests: some of ``TESTS``.
        samples: of each test; None for its default.
        seed: of all tests.
    """

    metrics: Mapping[str, MetricOptions] = field(
        default_factory=lambda: {name: METRICS[name].Options() for name in DEFAULT_METRICS}
    )
    levels: Tuple[str, ...] = LEVELS
    tests: Tuple[str, ...] = ()
    samples: Optional[int] = None
    seed: int = SEED


@dataclass(frozen=True)
class Column:
    """One metric on one level.

    Attributes:
        name: as in tables, "d-" before it on the level of documents.
        level: "sentence" or "document".
        signature: what makes it reproducible.
        lower_is_better: whether it counts errors.
        decimals: in tables.
        scores: by system.
        comparisons: by test.
    """

    name: str
    level: str
    signature: str
    lower_is_better: bool
    decimals: int
    scores: Dict[str, float]
    comparisons: Dict[str, Comparison]


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
        """Every figure, unrounded, as plain values."""
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


def build_report(references: References, systems: Mapping[str, Stream], options: ScoreOptions) -> ScoreReport:
    """Scores the systems.

    Args:
        references: of the test set, and its source for metrics that need it.
        systems: the translations by name, the baseline first.
        options: what to compute.

    Raises:
        InputError: an unknown tokeniser, a model that cannot be had, or tests that cannot be made on this test set.
    """
    documents, sentences = references.documents, references.sentences
    check_resampling(options.tests, options.levels, options.samples, options.seed, documents, sentences)
    metrics = metrics_of(references, options)  # all of them first: what one lacks is said before another works long
    columns = [_column(metric, systems, options) for metric in metrics]
    empty = {name: sum(not sentence for text in stream for sentence in text) for name, stream in systems.items()}
    return ScoreReport(references.files, documents, sentences, empty, columns, options.seed)


def metrics_of(references: References, options: ScoreOptions) -> List[Metric]:
    """The metrics of all columns: level by level, then those that take sentences whatever the level."""
    by_level = {level: references.at_level(level) for level in options.levels}
    chosen = [(METRICS[name], told) for name, told in options.metrics.items()]
    joining = [kind(test_set, told) for test_set in by_level.values() for kind, told in chosen if kind.joins_documents]
    return [*joining, *(kind(references, told) for kind, told in chosen if not kind.joins_documents)]


def _column(metric: Metric, systems: Mapping[str, Stream], options: ScoreOptions) -> Column:
    level = metric.test_set.level
    rows = metric.statistics([at_level(stream, level) for stream in systems.values()])
    statistics = dict(zip(systems, rows))
    comparisons = {}
    for name in options.tests:
        test = TESTS[name]()
        comparisons[name] = test.compare(metric, statistics, options.samples or test.samples, options.seed)
    return Column(
        name=("d-" if level == "document" else "") + metric.title,
        level=level,
        signature=metric.signature(),
        lower_is_better=metric.lower_is_better,
        decimals=metric.decimals,
        scores={system: metric.corpus_score(of_system) for system, of_system in statistics.items()},
        comparisons=comparisons,
    )

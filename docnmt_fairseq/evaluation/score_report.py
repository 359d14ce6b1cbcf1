"""Report of ``docnmt score``: scores of systems by metric and level, with significance tests."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.evaluation.examples import Examples
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.significance import SEED, TESTS, Comparison, Outcome, check_tests
from docnmt_fairseq.evaluation.tables import Definitions, Part, Table
from docnmt_fairseq.evaluation.texts import LEVELS, References, Stream, at_level

DEFAULT_METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class ScoreOptions:
    """Options of the report.

    Attributes:
        metrics: names in ``METRICS`` with their options.
        levels: some of ``LEVELS``.
        tests: names in ``TESTS``.
        samples: resamples of each test; None for its default.
        seed: random seed of all tests.
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
    """Scores by one metric at one level.

    Attributes:
        name: title of the metric, with "d-" at document level.
        level: "sentence" or "document".
        signature: reproducibility signature.
        lower_is_better: True for error rates.
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

    @property
    def heading(self) -> str:
        """Name in tables."""
        return f"{self.name}↓" if self.lower_is_better else self.name


@dataclass(frozen=True)
class ScoreReport:
    """Scores of a test set; the first system is the baseline of the tests.

    Attributes:
        references: reference files.
        documents, sentences: size of the test set.
        empty: number of empty translations by system.
        columns: scores.
        seed: random seed of the tests.
        examples: sentences that systems translate differently, if requested.
    """

    references: Tuple[Path, ...]
    documents: int
    sentences: int
    empty: Dict[str, int]
    columns: List[Column]
    seed: int
    examples: Optional[Examples] = None

    @property
    def systems(self) -> List[str]:
        """Names of the systems."""
        return list(self.empty)

    def to_json(self) -> Dict[str, Any]:
        """All figures, unrounded, as plain values."""
        values = {
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
        return values if self.examples is None else {**values, "examples": asdict(self.examples)}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        scores = [["system", *(column.heading for column in self.columns)]]
        for name in self.systems:
            scores.append([name, *(f"{column.scores[name]:.{column.decimals}f}" for column in self.columns)])
        parts: List[Part] = [self._size(), Table(scores)]
        for test, comparison in self.columns[0].comparisons.items():
            title = TESTS[test].title.format(comparison.samples)
            rows = [["metric", "system", "score", "difference", "p"]]
            for column in self.columns:
                outcomes = column.comparisons[test].outcomes
                rows += [[column.heading, name, *_cells(outcomes[name], column.decimals)] for name in self.systems]
            parts.append(Table(rows, f"{title}; against {self.systems[0]}"))
        signatures = []
        for column in self.columns:
            signatures.append([column.name, column.signature])
            signatures += [[f"{column.name}, {test}", one.signature] for test, one in column.comparisons.items()]
        parts.append(Definitions(signatures, code=True))
        return parts if self.examples is None else parts + self.examples.parts()

    def _size(self) -> str:
        references = f"{len(self.references)} reference{'s' if len(self.references) > 1 else ''}"
        empty = ", ".join(f"{count:,} of {name}" for name, count in self.empty.items() if count)
        counts = f"{self.documents:,} documents, {self.sentences:,} sentences, {references}"
        return f"{counts}; empty translations: {empty}" if empty else counts


def _cells(outcome: Outcome, decimals: int) -> List[str]:
    """Score ± margin, difference [interval], and p; the last two are empty for the baseline."""
    score = f"{outcome.score:.{decimals}f}"
    if outcome.margin is not None:
        score += f" ± {outcome.margin:.{decimals}f}"
    if outcome.difference is None:
        return [score, "", ""]
    difference = f"{outcome.difference:+.{decimals}f}"
    if outcome.difference_interval:
        low, high = outcome.difference_interval
        difference += f" [{low:+.{decimals}f}, {high:+.{decimals}f}]"
    return [score, difference, f"{outcome.p_value:.4f}"]


def build_report(
    references: References, systems: Mapping[str, Stream], options: ScoreOptions, examples: Optional[Examples] = None
) -> ScoreReport:
    """Scores the systems.

    Args:
        references: test set, with its source for metrics that need it.
        systems: translations by name, the baseline first.
        options: metrics, levels and tests.
        examples: sentences to include.

    Raises:
        InputError: invalid options of metrics, or tests that this test set does not allow.
    """
    documents, sentences = references.documents, references.sentences
    check_tests(options.tests, options.levels, options.samples, options.seed, documents, sentences)
    metrics = create_metrics(references, options)  # all before the first is computed, so that errors are early
    columns = [_column(metric, systems, options) for metric in metrics]
    empty = {name: sum(not sentence for text in stream for sentence in text) for name, stream in systems.items()}
    return ScoreReport(references.files, documents, sentences, empty, columns, options.seed, examples)


def create_metrics(references: References, options: ScoreOptions) -> List[Metric]:
    """Metrics of all columns: level by level, then those that score sentences only."""
    by_level = [references.at_level(level) for level in options.levels]
    chosen = [(METRICS[name], given) for name, given in options.metrics.items()]
    at_levels = [kind(test_set, given) for test_set in by_level for kind, given in chosen if kind.scores_documents]
    return [*at_levels, *(kind(references, given) for kind, given in chosen if not kind.scores_documents)]


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

"""Report of ``docnmt score``: scores of systems by metric and level, with significance tests."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from docnmt_fairseq import __version__
from docnmt_fairseq.evaluation.examples import Examples
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.base import column_sums
from docnmt_fairseq.evaluation.significance import TESTS, Comparison, Outcome, ResamplingOptions, check_tests
from docnmt_fairseq.evaluation.tables import Definitions, Part, Table
from docnmt_fairseq.evaluation.texts import LEVELS, References, Stream, at_level

DEFAULT_METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class Column:
    """Scores by one metric at one level, by system, with scores by category and comparisons by test."""

    metric: Metric
    scores: Dict[str, float]
    parts: Dict[str, Dict[str, float]]
    comparisons: Dict[str, Comparison]

    @property
    def heading(self) -> str:
        """Name in tables."""
        return f"{self.metric.name}↓" if self.metric.lower_is_better else self.metric.name


@dataclass(frozen=True)
class ScoreReport:
    """Scores of a test set; the first system is the baseline of the tests.

    Attributes:
        references: test set.
        empty: number of empty translations by system.
        columns: scores.
        seed: random seed of the tests.
        examples: sentences that systems translate differently, if requested.
    """

    references: References
    empty: Dict[str, int]
    columns: List[Column]
    seed: int
    examples: Optional[Examples] = None

    def to_json(self) -> Dict[str, Any]:
        """All figures, unrounded, as plain values."""
        values = {
            "docnmt_fairseq": __version__,
            "references": list(map(str, self.references.files)),
            "documents": self.references.documents,
            "sentences": self.references.sentences,
            "empty_translations": self.empty,
            "baseline": next(iter(self.empty)),
            "seed": self.seed,
            "scores": [
                {
                    "metric": column.metric.name,
                    "level": column.metric.test_set.level,
                    "signature": column.metric.signature(),
                    "lower_is_better": column.metric.lower_is_better,
                    "systems": column.scores,
                    **({"parts": column.parts} if column.metric.parts else {}),
                    "tests": {name: asdict(comparison) for name, comparison in column.comparisons.items()},
                }
                for column in self.columns
            ],
        }
        return values if self.examples is None else {**values, "examples": asdict(self.examples)}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        scores = [["system", *(column.heading for column in self.columns)]]
        for name in self.empty:
            scores.append([name, *(f"{column.scores[name]:.{column.metric.decimals}f}" for column in self.columns)])
        parts: List[Part] = [self._size(), Table(scores)]
        for column in (column for column in self.columns if column.metric.parts):
            rows = [["system", *column.metric.parts]]
            for name, of in column.parts.items():
                rows.append([name, *(f"{of[part]:.2f}" if part in of else "–" for part in column.metric.parts)])
            parts.append(Table(rows, f"{column.heading} by category"))
        for test, comparison in self.columns[0].comparisons.items():
            rows = [["metric", "system", "score", "difference", "p"]]
            for column in self.columns:
                for name, outcome in column.comparisons[test].outcomes.items():
                    rows.append([column.heading, name, *_cells(outcome, column.metric.decimals)])
            title = TESTS[test].title.format(comparison.samples)
            parts.append(Table(rows, f"{title}; against {next(iter(self.empty))}"))
        signatures = []
        for column in self.columns:
            name = column.metric.name
            signatures.append([name, column.metric.signature()])
            signatures += [[f"{name}, {test}", one.signature] for test, one in column.comparisons.items()]
        parts.append(Definitions(signatures, code=True))
        return parts if self.examples is None else parts + self.examples.parts()

    def _size(self) -> str:
        count = len(self.references.files)
        references = f"{count} reference{'s' if count > 1 else ''}"
        empty = ", ".join(f"{count:,} of {name}" for name, count in self.empty.items() if count)
        counts = f"{self.references.documents:,} documents, {self.references.sentences:,} sentences, {references}"
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
    references: References,
    systems: Mapping[str, Stream],
    metrics: Mapping[str, MetricOptions],
    levels: Sequence[str] = LEVELS,
    tests: Sequence[str] = (),
    resampling: ResamplingOptions = ResamplingOptions(),
    examples: Optional[Examples] = None,
    more: Sequence[Metric] = (),
) -> ScoreReport:
    """Scores the systems level by level, then by the metrics that score sentences only.

    Args:
        references: test set, with its source for metrics that need it.
        systems: translations by name, the baseline first.
        metrics: names in ``METRICS`` with their options.
        levels: some of ``LEVELS``.
        tests: names in ``TESTS``.
        resampling: options of the tests.
        examples: sentences to include.
        more: further metrics, which score sentences.

    Raises:
        InputError: invalid options of metrics, or tests that this test set does not allow.
    """
    check_tests(tests, levels, references)
    by_level = [references.at_level(level) for level in levels]
    chosen = [(METRICS[name], given) for name, given in metrics.items()]
    # All metrics before the first is computed, so that errors are early.
    created = [kind(test_set, given) for test_set in by_level for kind, given in chosen if kind.scores_documents]
    created += [kind(references, given) for kind, given in chosen if not kind.scores_documents]
    columns = []
    for metric in [*created, *more]:
        streams = {name: at_level(stream, metric.test_set.level) for name, stream in systems.items()}
        statistics = {name: metric.system_statistics(name, stream) for name, stream in streams.items()}
        comparisons = {}
        for name in tests:
            test = TESTS[name]()
            samples = resampling.bootstrap_samples or test.samples
            comparisons[name] = test.compare(metric, statistics, samples, resampling.seed)
        scores = {name: metric.corpus_score(of_system) for name, of_system in statistics.items()}
        parts = {name: metric.part_scores(column_sums(of_system)) for name, of_system in statistics.items()}
        columns.append(Column(metric, scores, parts, comparisons))
    empty = {name: sum(not sentence for text in stream for sentence in text) for name, stream in systems.items()}
    return ScoreReport(references, empty, columns, resampling.seed, examples)

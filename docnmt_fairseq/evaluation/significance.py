"""Significance tests and confidence intervals by resampling documents or segments.

Metrics provide sufficient statistics per segment, so a resample is scored from a sum of rows. The paired bootstrap and
the approximate randomisation over segments compute what ``sacrebleu --paired-bs`` and ``--paired-ar`` compute, for
every metric. Sentences of a document are not independent: resampling sentences overstates significance, resampling
documents does not.
"""

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Callable, ClassVar, Dict, Hashable, Mapping, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import Metric, Statistics
from docnmt_fairseq.registry import Registry

SEED = 12345  # default of sacreBLEU
MIN_DOCUMENTS = 10  # below this number, p-values are too small

Interval = Optional[Tuple[float, float]]  # None for a single document

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """Result of a test for one system.

    Attributes:
        score: on the whole test set.
        difference: to the score of the baseline; None for the baseline itself, as are the next two.
        p_value: two-sided.
        difference_interval: 95 % interval, if documents were resampled.
        mean: mean of the resampled scores; None if scores were not resampled, as is the next.
        margin: half the 95 % interval of the resampled scores.
    """

    score: float
    difference: Optional[float] = None
    p_value: Optional[float] = None
    difference_interval: Optional[Tuple[float, float]] = None
    mean: Optional[float] = None
    margin: Optional[float] = None


@dataclass(frozen=True)
class Comparison:
    """One test of one metric; outcomes by system, the baseline first."""

    samples: int
    signature: str
    outcomes: Dict[str, Outcome]


class SignificanceTest(ABC):
    """Tests the differences between the first system, the baseline, and each other system.

    Class attributes:
        help: description in one line.
        title: heading of the table, with a placeholder for the number of samples.
        samples: default number of resamples.
        resamples_documents: whether documents are resampled, rather than the segments of the metric's level.
    """

    help: ClassVar[str]
    title: ClassVar[str]
    samples: ClassVar[int]
    resamples_documents: ClassVar[bool] = False

    @abstractmethod
    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """Tests all systems.

        Args:
            metric: metric of the statistics.
            systems: statistics of each system, [segments, sums], the baseline first.
            samples: number of resamples.
            seed: random seed, at least 1.
        """


TESTS: Registry[SignificanceTest] = Registry("significance test")


@TESTS.register("documents")
class DocumentBootstrap(SignificanceTest):
    """Paired bootstrap over whole documents."""

    help = "paired bootstrap over whole documents, for scores of either level"
    title = "paired bootstrap, {:,} resamples of whole documents"
    samples = 1000
    resamples_documents = True

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`."""
        counts = list(map(len, metric.test_set.lines))
        sums = {name: sums_by_document(statistics, counts) for name, statistics in systems.items()}
        outcomes = compare_documents(sums, metric.score, samples, seed)
        return Comparison(samples, metric.signature(bs=samples, seed=seed, resampled="documents"), outcomes)


def compare_documents(
    systems: Mapping[str, np.ndarray], score: Callable[[Sequence[float]], float], samples: int, seed: int
) -> Dict[str, Outcome]:
    """Outcomes of the paired bootstrap over documents, by system.

    The p-value is the share of resampled differences that are at least as far from their mean as the observed
    difference is from 0 (bootstrap under a shifted null hypothesis, two-sided), with one added to both counts.

    Args:
        systems: sums of the statistics of each system, [documents, sums], the baseline first.
        score: score of a row of sums.
        samples: number of resamples.
        seed: random seed.
    """
    from sacrebleu.significance import estimate_ci

    baseline = next(iter(systems))
    draws = draw_documents(len(systems[baseline]), samples, seed)
    resampled = {name: np.array([score(row) for row in (draws @ sums).tolist()]) for name, sums in systems.items()}
    observed = {name: score(sums.sum(0).tolist()) for name, sums in systems.items()}
    outcomes = {}
    for name in systems:
        mean, margin = map(float, estimate_ci(resampled[name]))
        if name == baseline:
            outcomes[name] = Outcome(observed[name], mean=mean, margin=margin)
            continue
        differences = resampled[name] - resampled[baseline]
        difference = observed[name] - observed[baseline]
        extreme = np.abs(differences - differences.mean()) >= abs(difference)
        low, high = map(float, np.quantile(differences, (0.025, 0.975)))
        p_value = _p_value(extreme)
        outcomes[name] = Outcome(observed[name], difference, p_value, (low, high), mean, margin)
    return outcomes


def sums_by_document(statistics: Sequence[Sequence[float]], segments: Sequence[int]) -> np.ndarray:
    """Statistics summed by document, [documents, sums].

    Args:
        statistics: rows of the segments.
        segments: number of segments of each document, at least 1.
    """
    starts = np.cumsum([0, *segments[:-1]])
    return np.add.reduceat(np.array(statistics, dtype=np.float64), starts, axis=0)


@TESTS.register("bootstrap")
class SegmentBootstrap(SignificanceTest):
    """Paired bootstrap over segments as in sacreBLEU and Moses."""

    help = "paired bootstrap over segments, as in sacreBLEU"
    title = "paired bootstrap, {:,} resamples of segments"
    samples = 1000

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`."""
        from sacrebleu.significance import estimate_ci

        baseline = next(iter(systems))
        segments = len(systems[baseline])
        draws = np.random.default_rng(seed).choice(segments, size=(samples, segments), replace=True)
        resampled = {}
        for name, statistics in systems.items():
            rows = np.array(statistics, dtype="float32")  # as in sacreBLEU
            resampled[name] = np.array([metric.score(rows[draw].sum(0)) for draw in draws])
        outcomes = {}
        for name, outcome in _observed(metric, systems).items():
            mean, margin = map(float, estimate_ci(resampled[name]))
            p_value = None
            if outcome.difference is not None:
                differences = np.abs(resampled[name] - resampled[baseline])
                p_value = _p_value(differences - differences.mean() > abs(outcome.difference), outcome.difference)
            outcomes[name] = Outcome(outcome.score, outcome.difference, p_value, mean=mean, margin=margin)
        return Comparison(samples, metric.signature(seed=seed, bs=samples), outcomes)


@TESTS.register("randomisation")
class ApproximateRandomisation(SignificanceTest):
    """Approximate randomisation over segments as in sacreBLEU."""

    help = "approximate randomisation over segments, as in sacreBLEU"
    title = "approximate randomisation, {:,} trials over segments"
    samples = 10_000

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`."""
        first, *others = systems
        baseline = np.array(systems[first])
        swapped = np.random.default_rng(seed).integers(2, size=(samples, len(baseline)), dtype=bool)
        outcomes = _observed(metric, systems)
        for name in others:
            statistics, outcome = np.array(systems[name]), outcomes[name]
            sides = (swapped @ baseline + ~swapped @ statistics, ~swapped @ baseline + swapped @ statistics)
            one, other = (np.array([metric.corpus_score(row) for row in side[:, None]]) for side in sides)
            p_value = _p_value(np.abs(one - other) > abs(outcome.difference or 0), outcome.difference)
            outcomes[name] = Outcome(outcome.score, outcome.difference, p_value)
        return Comparison(samples, metric.signature(seed=seed, ar=samples), outcomes)


@TESTS.register("signs")
class SignTest(SignificanceTest):
    """Sign test of Collins et al. (2005, sec. 3.2), two-sided, without random numbers.

    Corpus-level metrics have no sentence scores. Each segment of the baseline is replaced by the system's, and the sign
    is whether the corpus score improves. Segments without an effect are ignored.
    """

    help = "sign test of Collins et al. (2005) over segments; ignores --bootstrap-samples and --seed"
    title = "sign test, {:,} segments"
    samples = 1

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`; the number of samples is that of the segments."""
        rows = {name: np.array(statistics, dtype=np.float64) for name, statistics in systems.items()}
        baseline = next(iter(rows))
        scores = {name: metric.score(of_system.sum(0).tolist()) for name, of_system in rows.items()}
        outcomes = {baseline: Outcome(scores[baseline])}
        for name in [name for name in rows if name != baseline]:
            p_value = sign_p_value(metric, rows[baseline], rows[name])
            outcomes[name] = Outcome(scores[name], scores[name] - scores[baseline], p_value)
        return Comparison(len(rows[baseline]), metric.signature(test="signs"), outcomes)


def sign_p_value(metric: Metric, baseline: np.ndarray, system: np.ndarray) -> float:
    """Two-sided p-value of the sign test; 1 if no segment has an effect.

    Args:
        metric: metric of the statistics.
        baseline, system: statistics, [segments, sums].
    """
    from scipy.stats import binomtest

    total = baseline.sum(0)
    score = metric.score(total.tolist())
    changed = np.flatnonzero((baseline != system).any(axis=1))
    differences = [metric.score((total - baseline[row] + system[row]).tolist()) - score for row in changed]
    better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def _observed(metric: Metric, systems: Mapping[str, Statistics]) -> Dict[str, Outcome]:
    """Scores and differences on the whole test set, by system."""
    scores = {name: float(metric.corpus_score(statistics)) for name, statistics in systems.items()}
    baseline = next(iter(scores))
    return {
        name: Outcome(score, None if name == baseline else score - scores[baseline]) for name, score in scores.items()
    }


def _p_value(extreme: np.ndarray, difference: Optional[float] = None) -> float:
    """Share of extreme resamples, one added to both counts; 1 for equal scores, where sacreBLEU reports 0."""
    return 1.0 if difference == 0 else (int(extreme.sum()) + 1) / (len(extreme) + 1)


def check_tests(
    tests: Sequence[str], levels: Sequence[str], samples: Optional[int], seed: int, documents: int, sentences: int
) -> None:
    """Refuses tests over a single segment or document, for which every difference would be significant.

    Args:
        tests: names in ``TESTS``.
        levels: levels of the tested scores.
        samples: number of resamples; None for the default.
        seed: random seed.
        documents, sentences: size of the test set.

    Raises:
        InputError: numbers out of range, or a single segment or document.
    """
    if samples is not None and samples < 1:
        raise InputError(f"--bootstrap-samples {samples}: must be at least 1")
    if seed < 1:
        raise InputError(f"--seed {seed}: must be at least 1")
    if tests and sentences < 2:
        raise InputError(f"--test {' '.join(tests)}: the test set has one sentence")
    if not tests or ("document" not in levels and not any(TESTS[test].resamples_documents for test in tests)):
        return
    if documents < 2:
        remedy = "separate documents with empty lines in the references, or use --level sentence"
        raise InputError(f"--test {' '.join(tests)}: the test set has one document; {remedy}")
    if documents < MIN_DOCUMENTS:
        logger.warning(f"significance test over {documents} documents: p-values are too small with so few")


def check_bootstrap(samples: int, seed: int) -> None:
    """Raises :class:`InputError` for numbers out of range."""
    if samples < 1:
        raise InputError(f"--bootstrap-samples {samples}: must be at least 1")
    if seed < 0:
        raise InputError(f"--seed {seed}: must not be negative")


def draw_documents(documents: int, samples: int, seed: int) -> np.ndarray:
    """Number of times each document is in each resample, [samples, documents]."""
    return np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=samples)


def interval_of_mean(
    totals: Sequence[float],
    documents: Sequence[Hashable],
    samples: int,
    seed: int,
    counts: Optional[Sequence[float]] = None,
) -> Interval:
    """95 % interval of Σ totals / Σ counts by a bootstrap over documents; None if there is one document.

    Documents are numbered by first occurrence, so the interval does not depend on their names.

    Args:
        totals: [n] value of each item.
        documents: [n] document of each item.
        samples: number of resamples.
        seed: random seed.
        counts: [n] weight of each item; 1 by default.
    """
    known = {document: number for number, document in enumerate(dict.fromkeys(documents))}
    if len(known) < 2:
        return None
    numbers = np.array([known[document] for document in documents])
    sums = np.bincount(numbers, weights=np.asarray(totals, dtype=float))  # [documents]
    sizes = np.bincount(numbers, weights=None if counts is None else np.asarray(counts, dtype=float))
    draws = draw_documents(len(known), samples, seed)
    low, high = np.percentile((draws @ sums) / (draws @ sizes), [2.5, 97.5])
    return float(low), float(high)


def format_interval(interval: Interval, form: str) -> str:
    """Table cell of an interval.

    Args:
        interval: result of :func:`interval_of_mean`.
        form: format string of its ends.
    """
    return "(one document)" if interval is None else " to ".join(map(form.format, interval))

"""Significance tests and confidence intervals by resampling documents or segments.

Metrics provide sufficient statistics per segment, so a resample is scored from a sum of rows. The paired bootstrap and
the approximate randomisation over segments compute what ``sacrebleu --paired-bs`` and ``--paired-ar`` compute, for
every metric. Sentences of a document are not independent: resampling sentences overstates significance, resampling
documents does not.
"""

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Callable, ClassVar, Dict, Hashable, Mapping, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import Metric, Statistics
from docnmt_fairseq.evaluation.texts import References
from docnmt_fairseq.options import CheckedOptions, option
from docnmt_fairseq.registry import Registry

SEED = 12345  # default of sacreBLEU
MIN_DOCUMENTS = 10  # below this number, p-values are too small

Interval = Optional[Tuple[float, float]]  # None for a single document

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """Result of a test for one system; the difference is to the baseline, and None for the baseline itself."""

    score: float  # on the whole test set
    difference: Optional[float] = None
    p_value: Optional[float] = None  # two-sided
    difference_interval: Optional[Tuple[float, float]] = None  # 95 %, if documents were resampled
    mean: Optional[float] = None  # of the resampled scores; None if scores were not resampled
    margin: Optional[float] = None  # half the 95 % interval of the resampled scores


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
    """Paired bootstrap over whole documents.

    The p-value is the share of resampled differences that are at least as far from their mean as the observed
    difference is from 0 (bootstrap under a shifted null hypothesis, two-sided), with one added to both counts.
    """

    help = "paired bootstrap over whole documents, for scores of either level"
    title = "paired bootstrap, {:,} resamples of whole documents"
    samples = 1000
    resamples_documents = True

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """Resamples documents from the sums of their segments."""
        starts = np.cumsum([0, *map(len, metric.test_set.lines[:-1])])
        draws = draw_documents(len(starts), samples, seed)
        scores, resampled = {}, {}
        for name, statistics in systems.items():
            sums = np.add.reduceat(np.array(statistics, dtype=np.float64), starts, axis=0)  # [documents, sums]
            scores[name] = metric.score(sums.sum(0).tolist())
            resampled[name] = np.array([metric.score(row) for row in (draws @ sums).tolist()])

        def judge(differences: np.ndarray, difference: float) -> Dict[str, Any]:
            extreme = np.abs(differences - differences.mean()) >= abs(difference)
            low, high = map(float, np.quantile(differences, (0.025, 0.975)))
            return {"p_value": _p_value(extreme), "difference_interval": (low, high)}

        outcomes = _paired_outcomes(scores, resampled, judge)
        return Comparison(samples, metric.signature(bs=samples, seed=seed, resampled="documents"), outcomes)


@TESTS.register("bootstrap")
class SegmentBootstrap(SignificanceTest):
    """Paired bootstrap over segments as in sacreBLEU and Moses."""

    help = "paired bootstrap over segments, as in sacreBLEU"
    title = "paired bootstrap, {:,} resamples of segments"
    samples = 1000

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """Resamples segments."""
        scores = {name: float(metric.corpus_score(statistics)) for name, statistics in systems.items()}
        segments = len(next(iter(systems.values())))
        draws = np.random.default_rng(seed).choice(segments, size=(samples, segments), replace=True)
        resampled = {}
        for name, statistics in systems.items():
            rows = np.array(statistics, dtype="float32")  # as in sacreBLEU
            resampled[name] = np.array([metric.score(rows[draw].sum(0)) for draw in draws])

        def judge(differences: np.ndarray, difference: float) -> Dict[str, Any]:
            sizes = np.abs(differences)
            return {"p_value": _p_value(sizes - sizes.mean() > abs(difference)) if difference else 1.0}

        outcomes = _paired_outcomes(scores, resampled, judge)
        return Comparison(samples, metric.signature(seed=seed, bs=samples), outcomes)


@TESTS.register("randomisation")
class ApproximateRandomisation(SignificanceTest):
    """Approximate randomisation over segments as in sacreBLEU."""

    help = "approximate randomisation over segments, as in sacreBLEU"
    title = "approximate randomisation, {:,} trials over segments"
    samples = 10_000

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """Exchanges random segments of the baseline and the system."""
        first, *others = systems
        baseline, score = np.array(systems[first]), float(metric.corpus_score(systems[first]))
        swapped = np.random.default_rng(seed).integers(2, size=(samples, len(baseline)), dtype=bool)
        outcomes = {first: Outcome(score)}
        for name in others:
            statistics, own = np.array(systems[name]), float(metric.corpus_score(systems[name]))
            sides = (swapped @ baseline + ~swapped @ statistics, ~swapped @ baseline + swapped @ statistics)
            one, other = (np.array([metric.corpus_score(row) for row in side[:, None]]) for side in sides)
            difference = own - score
            extreme = np.abs(one - other) > abs(difference)
            outcomes[name] = Outcome(own, difference, _p_value(extreme) if difference else 1.0)
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
        """Replaces single segments; the number of samples is that of the segments."""
        rows = {name: np.array(statistics, dtype=np.float64) for name, statistics in systems.items()}
        first, *others = rows
        scores = {name: metric.score(of_system.sum(0).tolist()) for name, of_system in rows.items()}
        outcomes = {first: Outcome(scores[first])}
        for name in others:
            p_value = sign_p_value(metric, rows[first], rows[name])
            outcomes[name] = Outcome(scores[name], scores[name] - scores[first], p_value)
        return Comparison(len(rows[first]), metric.signature(test="signs"), outcomes)


def sign_p_value(metric: Metric, baseline: np.ndarray, system: np.ndarray) -> float:
    """Two-sided p-value of the sign test on statistics [segments, sums]; 1 if no segment has an effect."""
    from scipy.stats import binomtest

    total = baseline.sum(0)
    score = metric.score(total.tolist())
    changed = np.flatnonzero((baseline != system).any(axis=1))
    differences = [metric.score((total - baseline[row] + system[row]).tolist()) - score for row in changed]
    better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def _p_value(extreme: np.ndarray) -> float:
    """Share of extreme resamples, one added to both counts."""
    return (int(extreme.sum()) + 1) / (len(extreme) + 1)


def _paired_outcomes(
    scores: Dict[str, float],
    resampled: Dict[str, np.ndarray],
    judge: Callable[[np.ndarray, float], Dict[str, Any]],
) -> Dict[str, Outcome]:
    """Outcomes of a paired bootstrap; ``judge`` takes the resampled differences and the observed one."""
    from sacrebleu.significance import estimate_ci

    baseline, outcomes = next(iter(scores)), {}
    for name, score in scores.items():
        mean, margin = map(float, estimate_ci(resampled[name]))
        outcomes[name] = Outcome(score, mean=mean, margin=margin)
        if name != baseline:
            difference = score - scores[baseline]
            judged = judge(resampled[name] - resampled[baseline], difference)
            outcomes[name] = replace(outcomes[name], difference=difference, **judged)
    return outcomes


_DEFAULTS = ", ".join(f"{name} {TESTS[name].samples:,}" for name in TESTS.names() if name != "signs")


@dataclass(frozen=True)
class ResamplingOptions(CheckedOptions):
    """Options of significance tests."""

    bootstrap_samples: Optional[int] = option(
        None, f"resamples, or randomisation trials (default: {_DEFAULTS})", minimum=1
    )
    seed: int = option(SEED, "random seed of the tests", minimum=1)


def check_tests(tests: Sequence[str], levels: Sequence[str], references: References) -> None:
    """Raises :class:`InputError` for a single document, for which every difference would be significant."""
    if not tests or ("document" not in levels and not any(TESTS[test].resamples_documents for test in tests)):
        return
    if references.documents < 2:
        remedy = "separate documents with empty lines in the references, or use --level sentence"
        raise InputError(f"--test {' '.join(tests)}: the test set has one document; {remedy}")
    if references.documents < MIN_DOCUMENTS:
        logger.warning(f"significance test over {references.documents} documents: p-values are too small with so few")


def draw_documents(documents: int, samples: int, seed: int) -> np.ndarray:
    """Number of times each document is in each resample, [samples, documents]."""
    return np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=samples)


@dataclass(frozen=True)
class IntervalOptions(CheckedOptions):
    """Options of intervals by a bootstrap over documents."""

    bootstrap_samples: int = option(1000, "resamples of intervals", minimum=1)
    seed: int = option(1, "random seed", minimum=0)

    def describe(self) -> str:
        """Settings, for the report."""
        return f"documents, {self.bootstrap_samples:,} times, seed {self.seed}"

    def of_mean(
        self, totals: Sequence[float], documents: Sequence[Hashable], counts: Optional[Sequence[float]] = None
    ) -> Interval:
        """95 % interval of Σ totals / Σ counts; None if there is one document.

        Documents are numbered by first occurrence, so the interval does not depend on their names.

        Args:
            totals: [n] value of each item.
            documents: [n] document of each item.
            counts: [n] weight of each item; 1 by default.
        """
        known = {document: number for number, document in enumerate(dict.fromkeys(documents))}
        if len(known) < 2:
            return None
        numbers = np.array([known[document] for document in documents])
        sums = np.bincount(numbers, weights=np.asarray(totals, dtype=float))  # [documents]
        sizes = np.bincount(numbers, weights=None if counts is None else np.asarray(counts, dtype=float))
        draws = draw_documents(len(known), self.bootstrap_samples, self.seed)
        low, high = np.percentile((draws @ sums) / (draws @ sizes), [2.5, 97.5])
        return float(low), float(high)


def format_interval(interval: Interval, form: str) -> str:
    """Table cell of an interval, with a format string of its ends."""
    return "(one document)" if interval is None else " to ".join(map(form.format, interval))

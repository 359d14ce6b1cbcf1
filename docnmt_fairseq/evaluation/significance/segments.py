"""sacreBLEU's paired tests over segments, for any metric that has statistics."""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Iterator, Mapping, Sequence

from docnmt_fairseq.evaluation.metrics import Metric
from docnmt_fairseq.evaluation.metrics.base import Statistics
from docnmt_fairseq.evaluation.significance.base import TESTS, Comparison, Outcome, SignificanceTest

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Signature


class SegmentTest(SignificanceTest):
    """Contract: ``library_name`` says what sacreBLEU calls the test.

    A system that scores exactly what the baseline scores has p = 1: every difference is at least as large as none.
    sacreBLEU counts larger ones only, and would call a system significantly different from itself.
    """

    library_name: ClassVar[str]

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`."""
        from sacrebleu.significance import PairedTest

        known: Any = {metric.title: _AsLibraryMetric(metric)}
        named: Any = list(systems.items())
        with _seeded(seed):
            paired = PairedTest(named, known, references=None, test_type=self.library_name, n_samples=samples)
            columns: Mapping[str, Any] = paired()[1]
        results = columns[metric.title]
        outcomes = {}
        for i, (system, result) in enumerate(zip(systems, results)):
            difference = None if i == 0 else float(result.score - results[0].score)
            p_value = 1.0 if difference == 0 else result.p_value
            # sacrebleu's own are NumPy's, single precision among them, which JSON does not take.
            mean, margin = (None if value is None else float(value) for value in (result.mean, result.ci))
            outcomes[system] = Outcome(float(result.score), difference, p_value, None, mean, margin)
        return Comparison(samples, metric.signature(**{"seed": seed, self.library_name: samples}), outcomes)


@TESTS.register("bootstrap")
class Bootstrap(SegmentTest):
    """Segments drawn with replacement, the same for both systems."""

    help = "sacreBLEU's paired bootstrap over the level's segments"
    title = "paired bootstrap, {:,} resamples of segments"
    samples = 1000
    library_name = "bs"


@TESTS.register("randomisation")
class Randomisation(SegmentTest):
    """Segments exchanged between both systems by chance."""

    help = "sacreBLEU's approximate randomisation over the same"
    title = "approximate randomisation, {:,} trials over segments"
    samples = 10_000
    library_name = "ar"


@dataclass(frozen=True)
class _Score:
    name: str
    score: float


class _AsLibraryMetric:
    """A metric as sacreBLEU's tests ask one, told statistics where these would give it text."""

    def __init__(self, metric: Metric):
        self.metric = metric

    def _extract_corpus_statistics(self, statistics: Statistics, references: None) -> Statistics:
        return statistics

    def _aggregate_and_compute(self, statistics: Statistics) -> _Score:
        return _Score(self.metric.title, self.metric.corpus_score(statistics))

    def _compute_score_from_stats(self, sums: Sequence[float]) -> _Score:
        return _Score(self.metric.title, self.metric.score(sums))

    def get_signature(self) -> "Signature":
        """One that nobody reads: the metric's own is asked instead."""
        from sacrebleu.metrics.base import Signature

        return Signature({"num_refs": 1})


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Gives sacrebleu its seed, which it takes from the environment only."""
    name = "SACREBLEU_SEED"
    before = os.environ.get(name)
    os.environ[name] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before

"""The sign test of Collins et al. (2005, sec. 3.2), for any metric that has statistics.

A metric of whole corpora has no score of a sentence. So each segment of the system is put in the place of the
baseline's, and whether the corpus then scores better or worse is its sign; segments that change nothing do not count.
Without a difference both signs are as likely.
"""

from typing import Mapping

import numpy as np

from docnmt_fairseq.evaluation.metrics import Metric
from docnmt_fairseq.evaluation.metrics.base import Statistics
from docnmt_fairseq.evaluation.significance.base import TESTS, Comparison, Outcome, SignificanceTest


@TESTS.register("signs")
class Signs(SignificanceTest):
    """Nothing is drawn: the p-value is that of a binomial distribution, two-sided."""

    help = "the sign test of Collins et al. (2005) over the level's segments, without --samples and --seed"
    title = "sign test, each of {:,} segments in the baseline's place"
    samples = 1
    draws = False

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`; the samples told are the segments."""
        rows = {name: np.array(statistics, dtype=np.float64) for name, statistics in systems.items()}
        baseline = next(iter(rows))
        scores = {name: metric.score(of_system.sum(0).tolist()) for name, of_system in rows.items()}
        outcomes = {baseline: Outcome(scores[baseline])}
        for name in [name for name in rows if name != baseline]:
            difference = scores[name] - scores[baseline]
            outcomes[name] = Outcome(scores[name], difference, sign_p_value(metric, rows[baseline], rows[name]))
        return Comparison(len(rows[baseline]), metric.signature(test="signs"), outcomes)


def sign_p_value(metric: Metric, baseline: np.ndarray, system: np.ndarray) -> float:
    """The p-value of a system beside the baseline; 1 where no segment makes a difference.

    Args:
        metric: whose score says what is better.
        baseline: its statistics, [segments, sums].
        system: the same of the system.
    """
    from scipy.stats import binomtest

    total = baseline.sum(0)
    score = metric.score(total.tolist())
    changed = np.flatnonzero((baseline != system).any(axis=1))
    differences = [metric.score((total - baseline[row] + system[row]).tolist()) - score for row in changed]
    better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0

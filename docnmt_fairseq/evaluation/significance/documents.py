"""The paired bootstrap over whole documents, for any metric that has statistics.

Sentences of one document are not independent, so that resampling sentences makes differences look surer than they are.
"""

from typing import Callable, Dict, List, Mapping, Sequence

import numpy as np

from docnmt_fairseq.evaluation.bootstrap import draw_documents
from docnmt_fairseq.evaluation.metrics import Metric
from docnmt_fairseq.evaluation.metrics.base import Statistics
from docnmt_fairseq.evaluation.significance.base import TESTS, Comparison, Outcome, SignificanceTest


@TESTS.register("documents")
class Documents(SignificanceTest):
    """Documents drawn with replacement, the same for all systems, with all that is in them."""

    help = "paired bootstrap over whole documents, for scores of either level"
    title = "paired bootstrap, {:,} resamples of whole documents"
    samples = 1000
    draws_documents = True

    def compare(self, metric: Metric, systems: Mapping[str, Statistics], samples: int, seed: int) -> Comparison:
        """See :meth:`SignificanceTest.compare`."""
        counts = list(map(len, metric.test_set.lines))
        sums = {name: sums_by_document(statistics, counts) for name, statistics in systems.items()}
        outcomes = compare_documents(sums, metric.score, samples, seed)
        return Comparison(samples, metric.signature(bs=samples, seed=seed, resampled="documents"), outcomes)


def compare_documents(
    systems: Mapping[str, np.ndarray], score: Callable[[List[float]], float], samples: int, seed: int
) -> Dict[str, Outcome]:
    """The outcomes of the paired bootstrap over whole documents, by system.

    A p-value is the share of resampled differences that are at least as far from their mean as the observed difference
    is from 0 (bootstrap under a shifted null hypothesis, two-sided), one added to numerator and denominator.

    Args:
        systems: by name the sums that the score is made of, [documents, sums], the baseline first.
        score: made of such sums over documents.
        samples: how often documents are drawn.
        seed: of the draws.
    """
    from sacrebleu.significance import estimate_ci

    baseline = next(iter(systems))
    draws = draw_documents(len(systems[baseline]), samples, seed)  # sums over a resample are then one product
    resampled, observed = {}, {}
    for name, sums in systems.items():
        resampled[name] = np.array([score(row) for row in (draws @ sums).tolist()])
        observed[name] = score(sums.sum(0).tolist())
    outcomes = {}
    for name in systems:
        mean, margin = map(float, estimate_ci(resampled[name]))
        if name == baseline:
            outcomes[name] = Outcome(observed[name], mean=mean, margin=margin)
            continue
        differences = resampled[name] - resampled[baseline]
        difference = observed[name] - observed[baseline]
        as_far = np.abs(differences - differences.mean()) >= abs(difference)
        p_value = (int(as_far.sum()) + 1) / (samples + 1)
        low, high = map(float, np.quantile(differences, (0.025, 0.975)))
        outcomes[name] = Outcome(observed[name], difference, p_value, (low, high), mean, margin)
    return outcomes


def sums_by_document(statistics: Sequence[Sequence[float]], segments: Sequence[int]) -> np.ndarray:
    """The statistics of segments added up by document, [documents, sums].

    Args:
        statistics: of each segment.
        segments: how many of them each document has, at least one.
    """
    starts = np.cumsum([0, *segments[:-1]])
    return np.add.reduceat(np.array(statistics, dtype=np.float64), starts, axis=0)

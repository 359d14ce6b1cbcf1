"""The sign test of Collins et al. (2005), against BLEU asked anew for every corpus with one sentence exchanged."""

from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu

from docnmt_fairseq.evaluation.metrics.bleu import Bleu, BleuOptions
from docnmt_fairseq.evaluation.significance import TESTS
from docnmt_fairseq.evaluation.significance.signs import sign_p_value
from docnmt_fairseq.evaluation.texts import at_level, segments
from tests.support.scored import made, reference_set, worse

REFERENCE = made()
SYSTEMS = {"base": worse(REFERENCE, 2, 0.4), "better": worse(REFERENCE, 3, 0.1), "same": worse(REFERENCE, 2, 0.4)}
SYSTEMS["near"] = worse(REFERENCE, 5, 0.4)  # better in some sentences, worse in others


def compared(systems, level="sentence"):
    metric = Bleu(reference_set(at_level(REFERENCE, level)), BleuOptions())
    rows = metric.statistics([at_level(stream, level) for stream in systems.values()])
    return TESTS["signs"]().compare(metric, dict(zip(systems, rows)), 1, 1)


def signs(baseline, system, level):
    """Counts [better, worse], sentence by sentence with sacreBLEU itself."""
    references, one, other = ([segments(stream, level)] for stream in (REFERENCE, baseline, system))
    score = sacrebleu.corpus_bleu(one[0], references).score
    counts = [0, 0]
    for place, segment in enumerate(other[0]):
        exchanged = [*one[0][:place], segment, *one[0][place + 1 :]]
        difference = sacrebleu.corpus_bleu(exchanged, references).score - score
        counts[0] += difference > 1e-9
        counts[1] += difference < -1e-9
    return counts


def two_sided(better, worse):
    """The binomial distribution with one half, both tails."""
    n, tail = better + worse, max(better, worse)
    return min(1.0, 2 * sum(comb(n, k) for k in range(tail, n + 1)) / 2**n)


@pytest.mark.parametrize("level", ["sentence", "document"])
def test_p_values_are_those_of_corpora_with_one_segment_exchanged(level):
    found = compared(SYSTEMS, level)
    counts = {name: signs(SYSTEMS["base"], SYSTEMS[name], level) for name in ("better", "near")}
    assert counts["better"][0] > counts["better"][1] and all(counts["near"])
    for name, of_system in counts.items():
        assert found.outcomes[name].p_value == pytest.approx(two_sided(*of_system), rel=1e-9)
    assert found.samples == len(segments(REFERENCE, level)) and "test:signs" in found.signature


def test_a_system_does_not_differ_from_itself():
    outcome = compared(SYSTEMS).outcomes["same"]
    assert (outcome.difference, outcome.p_value) == (0, 1)


def test_worse_is_as_significant_as_better():
    one = compared({"a": SYSTEMS["base"], "b": SYSTEMS["better"]}).outcomes["b"]
    other = compared({"a": SYSTEMS["better"], "b": SYSTEMS["base"]}).outcomes["b"]
    assert one.p_value < 0.05 and other.p_value < 0.05 and one.difference == -other.difference


def test_segments_that_change_no_score_do_not_count():
    """Three are better; of two others only what the score does not read has changed."""
    metric = SimpleNamespace(score=lambda sums: sums[0])
    baseline = np.zeros((6, 2))
    system = np.array([[1, 0], [1, 0], [1, 5], [0, 5], [0, 5], [0, 0]])
    assert sign_p_value(metric, baseline, system) == pytest.approx(two_sided(3, 0))

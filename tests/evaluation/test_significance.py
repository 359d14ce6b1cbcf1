"""Significance tests: sacreBLEU's results, and loops over resampled corpora."""

from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu.metrics
from sacrebleu.significance import PairedTest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import Bleu, BleuOptions
from docnmt_fairseq.evaluation.significance import (
    TESTS,
    IntervalOptions,
    ResamplingOptions,
    check_tests,
)
from docnmt_fairseq.evaluation.texts import at_level, segments
from tests.support.scored import made, reference_set, worse

REFERENCE = made()
SYSTEMS = {"base": worse(REFERENCE, 2, 0.4), "better": worse(REFERENCE, 3, 0.1), "same": worse(REFERENCE, 2, 0.4)}
NEAR = worse(REFERENCE, 5, 0.4)  # better in some sentences, worse in others
SAMPLES = 200
SACREBLEU_NAMES = {"bootstrap": "bs", "randomisation": "ar"}


def compare(test, seed=1, level="sentence", systems=SYSTEMS):
    metric = Bleu(reference_set(at_level(REFERENCE, level)), BleuOptions())
    rows = {name: metric.statistics(at_level(stream, level)) for name, stream in systems.items()}
    return TESTS[test]().compare(metric, rows, SAMPLES, seed)


@pytest.mark.parametrize("level", ["sentence", "document"])
@pytest.mark.parametrize("test", list(SACREBLEU_NAMES))
def test_results_equal_sacrebleu(monkeypatch, test, level):
    found = compare(test, 7, level)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    texts = [(name, segments(at_level(stream, level))) for name, stream in SYSTEMS.items()]
    metrics, references = {"BLEU": sacrebleu.metrics.BLEU()}, [segments(at_level(REFERENCE, level))]
    signatures, columns = PairedTest(texts, metrics, references, SACREBLEU_NAMES[test], SAMPLES)()
    assert found.signature == str(signatures["BLEU"]) and "seed:7" in found.signature
    for name, result in zip(columns["System"], columns["BLEU"]):
        outcome = found.outcomes[name]
        assert (outcome.score, outcome.mean, outcome.margin) == (result.score, result.mean, result.ci)
    base, better, same = columns["BLEU"]
    assert found.outcomes["better"].p_value == better.p_value
    assert found.outcomes["better"].difference == better.score - base.score
    assert found.outcomes["base"].difference is None and found.outcomes["base"].p_value is None
    assert same.p_value == 1 / (SAMPLES + 1)  # of identical systems; corrected to 1 here


@pytest.mark.parametrize("test", TESTS.names())
def test_identical_systems(test):
    same = compare(test).outcomes["same"]
    assert (same.difference, same.p_value) == (0, 1)


def test_document_bootstrap_equals_loop_over_corpora():
    found = compare("documents", seed=5).outcomes
    draws = np.random.default_rng(5).multinomial(len(REFERENCE), np.full(len(REFERENCE), 1 / len(REFERENCE)), SAMPLES)
    scores = {"base": [], "better": []}
    for draw in draws:
        drawn = [d for d, times in enumerate(draw) for _ in range(times)]
        reference = segments([REFERENCE[d] for d in drawn])
        for name, values in scores.items():
            translation = segments([SYSTEMS[name][d] for d in drawn])
            values.append(sacrebleu.metrics.BLEU().corpus_score(translation, [reference]).score)
    differences = np.subtract(scores["better"], scores["base"])
    better = found["better"]
    extreme = sum(abs(value - differences.mean()) >= abs(better.difference) for value in differences)
    assert better.p_value == (extreme + 1) / (SAMPLES + 1)
    assert better.mean == pytest.approx(np.mean(scores["better"]), abs=1e-9)
    assert better.difference_interval == pytest.approx(tuple(np.quantile(differences, (0.025, 0.975))), abs=1e-9)


def test_clear_and_random_differences():
    # 30 documents of 100 words: one more correct word in each, or one more or one less by turns.
    right, words = np.full(30, 90.0), np.full(30, 100.0)
    by_system = {"base": right, "clear": right + 1, "even": right + np.tile([1.0, -1.0], 15) + np.eye(30)[0]}
    sums = {name: np.stack([values, words], axis=1) for name, values in by_system.items()}
    metric = Metric(SimpleNamespace(lines=[[1]] * 30, level="sentence", streams=[]), MetricOptions())
    found = TESTS["documents"]().compare(metric, sums, 1000, 1).outcomes
    assert found["clear"].p_value < 0.01 and found["clear"].difference_interval[0] > 0
    low, high = found["even"].difference_interval
    assert found["even"].p_value > 0.5 and low < 0 < high


def binomial_p_value(better, worse):
    n, tail = better + worse, max(better, worse)
    return min(1.0, 2 * sum(comb(n, k) for k in range(tail, n + 1)) / 2**n)


@pytest.mark.parametrize("level", ["sentence", "document"])
def test_sign_test_equals_corpora_with_one_segment_exchanged(level):
    found = compare("signs", level=level, systems={**SYSTEMS, "near": NEAR})
    references, base = [segments(at_level(REFERENCE, level))], segments(at_level(SYSTEMS["base"], level))
    score = sacrebleu.corpus_bleu(base, references).score
    for name, stream in (("better", SYSTEMS["better"]), ("near", NEAR)):
        counts = [0, 0]
        for place, segment in enumerate(segments(at_level(stream, level))):
            exchanged = [*base[:place], segment, *base[place + 1 :]]
            difference = sacrebleu.corpus_bleu(exchanged, references).score - score
            counts[0] += difference > 1e-9
            counts[1] += difference < -1e-9
        assert found.outcomes[name].p_value == pytest.approx(binomial_p_value(*counts), rel=1e-9)
    assert found.samples == len(base) and "test:signs" in found.signature


def test_interval_resamples_documents():
    right, options = [True] * 50 + [False] * 50, IntervalOptions(2000)
    assert options.of_mean(right, ["a"] * 50 + ["b"] * 50) == (0, 1)
    by_item = options.of_mean(right, list(range(100)))
    assert by_item == pytest.approx((0.402, 0.598), abs=0.011)  # ½ ± 1.96 · 0.05
    assert by_item == options.of_mean(right, [f"x{number}" for number in range(100)])
    assert options.of_mean([2.0, 3.0], ["a", "b"], counts=[1, 3]) == (1, 2)
    assert options.of_mean(right, ["a"] * 100) is None


def test_impossible_tests():
    one_document = SimpleNamespace(documents=1)
    for tests, levels in ((["documents"], ["sentence"]), (["bootstrap"], ["document"])):
        with pytest.raises(InputError):
            check_tests(tests, levels, one_document)
    for options in ({"bootstrap_samples": 0}, {"seed": 0}):
        with pytest.raises(InputError):
            ResamplingOptions(**options)

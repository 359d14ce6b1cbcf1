import os

import numpy as np
import pytest
import sacrebleu.metrics
from sacrebleu.significance import PairedTest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.bleu import Bleu, BleuOptions
from docnmt_fairseq.evaluation.significance import TESTS, check_resampling
from docnmt_fairseq.evaluation.significance.documents import compare_documents, sums_by_document
from docnmt_fairseq.evaluation.texts import at_level, segments
from tests.support.scored import made, reference_set, worse

REFERENCE = made()
SYSTEMS = {"base": worse(REFERENCE, 2, 0.4), "better": worse(REFERENCE, 3, 0.1), "same": worse(REFERENCE, 2, 0.4)}
SAMPLES = 200
SEGMENT_TESTS = {"bootstrap": "bs", "randomisation": "ar"}  # and what sacrebleu calls them


def bleu(level="sentence"):
    return Bleu(reference_set(at_level(REFERENCE, level)), BleuOptions())


def texts(level="sentence"):
    return {name: segments(stream, level) for name, stream in SYSTEMS.items()}


def statistics(metric, level="sentence"):
    return dict(zip(SYSTEMS, metric.statistics([at_level(stream, level) for stream in SYSTEMS.values()])))


def compare_segments(test, metric, samples, seed, level="sentence"):
    found = TESTS[test]().compare(metric, statistics(metric, level), samples, seed)
    return found.outcomes, found.signature


def document_sums(metric):
    counts = list(map(len, REFERENCE))
    return {name: sums_by_document(rows, counts) for name, rows in statistics(metric).items()}


def documents_test(seed=5):
    metric = bleu()
    return compare_documents(document_sums(metric), metric.score, SAMPLES, seed)


@pytest.mark.parametrize("level", ["sentence", "document"])
@pytest.mark.parametrize("test", list(SEGMENT_TESTS))
def test_figures_are_sacrebleus(monkeypatch, test, level):
    found, signature = compare_segments(test, bleu(level), SAMPLES, 7, level)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    metric = sacrebleu.metrics.BLEU()
    references = [segments(REFERENCE, level)]
    paired = PairedTest(list(texts(level).items()), {"BLEU": metric}, references, SEGMENT_TESTS[test], SAMPLES)
    signatures, columns = paired()
    assert str(signature) == str(signatures["BLEU"]) and "seed:7" in str(signature)
    for name, result in zip(columns["System"], columns["BLEU"]):
        assert (found[name].score, found[name].mean, found[name].margin) == (result.score, result.mean, result.ci)
    assert found["better"].p_value == columns["BLEU"][1].p_value
    assert found["better"].difference == columns["BLEU"][1].score - columns["BLEU"][0].score
    assert found["base"].difference is None and found["base"].p_value is None


@pytest.mark.parametrize("test", list(SEGMENT_TESTS))
def test_a_system_does_not_differ_from_itself(test):
    found, _ = compare_segments(test, bleu(), SAMPLES, seed=1)
    assert (found["same"].difference, found["same"].p_value) == (0, 1)
    named = [(name, texts()[name]) for name in ("base", "same")]
    _, columns = PairedTest(
        named, {"BLEU": sacrebleu.metrics.BLEU()}, [segments(REFERENCE)], SEGMENT_TESTS[test], SAMPLES
    )()
    assert columns["BLEU"][1].p_value == 1 / (SAMPLES + 1)  # what sacrebleu says, which is corrected here
    same = documents_test()["same"]
    assert (same.difference, same.p_value, same.difference_interval) == (0, 1, (0, 0))


def test_documents_resampled_as_a_loop_over_corpora_would():
    found = documents_test(seed=5)
    draws = np.random.default_rng(5).multinomial(len(REFERENCE), np.full(len(REFERENCE), 1 / len(REFERENCE)), SAMPLES)
    scores = {"base": [], "better": []}
    for draw in draws:
        drawn = [d for d, times in enumerate(draw) for _ in range(times)]
        reference = segments([REFERENCE[d] for d in drawn], "sentence")
        for name, values in scores.items():
            translation = segments([SYSTEMS[name][d] for d in drawn], "sentence")
            values.append(sacrebleu.metrics.BLEU().corpus_score(translation, [reference]).score)
    whole = [
        sacrebleu.metrics.BLEU().corpus_score(texts()[name], [segments(REFERENCE, "sentence")]).score for name in scores
    ]
    differences = np.subtract(scores["better"], scores["base"])
    far = sum(abs(value - differences.mean()) >= abs(whole[1] - whole[0]) for value in differences)
    better = found["better"]
    assert better.score == pytest.approx(whole[1], abs=1e-9) and found["base"].score == pytest.approx(
        whole[0], abs=1e-9
    )
    assert better.p_value == (far + 1) / (SAMPLES + 1)
    assert better.mean == pytest.approx(np.mean(scores["better"]), abs=1e-9)
    assert better.difference_interval == pytest.approx(tuple(np.quantile(differences, (0.025, 0.975))), abs=1e-9)


def test_the_seed_decides():
    assert documents_test(5) == documents_test(5) != documents_test(6)
    one, two, other = (compare_segments("bootstrap", bleu(), SAMPLES, seed)[0] for seed in (5, 5, 6))
    assert one == two != other


def test_clear_differences_and_none_are_told_apart():
    # Each document wins a right word of a hundred over the baseline; or as many win as lose, and one wins two.
    right, words = np.full(30, 90.0), np.full(30, 100.0)
    by_system = {"base": right, "clear": right + 1, "even": right + np.tile([1.0, -1.0], 15) + np.eye(30)[0]}
    sums = {name: np.stack([values, words], axis=1) for name, values in by_system.items()}
    found = compare_documents(sums, lambda row: 100 * row[0] / row[1], 1000, 1)
    assert found["clear"].p_value < 0.01 and found["clear"].difference_interval[0] > 0
    assert (
        found["even"].p_value > 0.5 and found["even"].difference_interval[0] < 0 < found["even"].difference_interval[1]
    )


def test_sacrebleus_seed_is_put_back(monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    compare_segments("bootstrap", bleu(), 2, seed=9)
    assert "SACREBLEU_SEED" not in os.environ
    monkeypatch.setenv("SACREBLEU_SEED", "3")
    compare_segments("bootstrap", bleu(), 2, seed=9)
    assert os.environ["SACREBLEU_SEED"] == "3"


@pytest.mark.parametrize(
    "tests, levels, samples, seed, sizes, message",
    [
        (["documents"], ["sentence"], None, 1, (1, 9), "--test documents: the test set is one document"),
        (["bootstrap"], ["document"], None, 1, (1, 9), "--level sentence"),
        (["randomisation"], ["sentence"], None, 1, (1, 1), "one sentence"),
        (["bootstrap"], ["sentence"], 0, 1, (9, 99), "--samples 0"),
        (["bootstrap"], ["sentence"], None, 0, (9, 99), "--seed 0"),
    ],
)
def test_what_cannot_be_tested_is_refused(tests, levels, samples, seed, sizes, message):
    with pytest.raises(InputError, match=message):
        check_resampling(tests, levels, samples, seed, *sizes)


def test_few_documents_are_warned_of(caplog):
    check_resampling(["bootstrap"], ["sentence"], None, 1, 1, 9)
    check_resampling([], ["document"], None, 1, 1, 9)
    check_resampling(["documents"], ["sentence"], None, 1, 10, 99)
    assert not caplog.records
    check_resampling(["documents"], ["sentence"], None, 1, 9, 99)
    assert "a test over 9 documents" in caplog.text

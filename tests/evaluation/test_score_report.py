"""Reports of ``docnmt score``, and scores of one text, compared with sacreBLEU."""

import math

import pytest
import sacrebleu.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation import metrics
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import BleuOptions
from docnmt_fairseq.evaluation.postprocess import corpus_scores, human_targeted_error_rate, tokenized_bleu
from docnmt_fairseq.evaluation.score_report import build_report
from tests.support.scored import documents, reference_set, worse

METRICS = {
    "bleu": sacrebleu.metrics.BLEU,
    "chrf": sacrebleu.metrics.CHRF,
    "chrf++": lambda: sacrebleu.metrics.CHRF(word_order=2),
    "ter": sacrebleu.metrics.TER,
    "hter": lambda: sacrebleu.metrics.TER(case_sensitive=True),
}


def defaults(*names):
    return {name: metrics.METRICS[name].Options() for name in names}


@settings(max_examples=5, deadline=None)
@given(stream=documents, seed=st.integers(0, 99), count=st.integers(1, 3))
def test_scores_and_signatures_equal_sacrebleu(stream, seed, count):
    references = [stream, *(worse(stream, seed + i) for i in range(1, count))]
    systems = {"one": worse(stream, seed + 10), "two": worse(stream, seed + 11, 0.6)}
    found = build_report(reference_set(*references), systems, defaults(*METRICS))
    names = ("BLEU", "chrF2", "chrF2++", "TER", "HTER")
    assert [column.metric.name for column in found.columns] == [
        prefix + name for prefix in ("", "d-") for name in names
    ]
    for column, (make, joined) in zip(found.columns, [(m, j) for j in (False, True) for m in METRICS.values()]):

        def segments(text, joined=joined):
            return [" ".join(one) for one in text] if joined else [sentence for one in text for sentence in one]

        for name, text in systems.items():
            metric = make()
            expected = metric.corpus_score(segments(text), [segments(one) for one in references])
            assert column.scores[name] == expected.score
        signature = str(metric.get_signature())
        assert column.metric.signature() == (
            signature.replace("|version", "|segments:documents|version") if joined else signature
        )


def test_options_of_bleu():
    stream, text = [["The dog.", "A cat ran"], ["x"]], [["the dog .", "A cat ran"], ["y"]]
    for options, expected in (
        (BleuOptions(tokenize="none", smooth="none"), sacrebleu.metrics.BLEU(tokenize="none", smooth_method="none")),
        (BleuOptions(lowercase=True, smooth="floor"), sacrebleu.metrics.BLEU(lowercase=True, smooth_method="floor")),
    ):
        metric = metrics.METRICS["bleu"](reference_set(stream), options)
        score = expected.corpus_score(["the dog .", "A cat ran", "y"], [["The dog.", "A cat ran", "x"]]).score
        assert metric.corpus_score(metric.statistics(text)) == score
        assert metric.signature() == str(expected.get_signature())


def test_boundaries_are_not_scored():
    reference = ["ba do gi ke lo", "<p>", "mo nu pa re", ""]
    scores = corpus_scores(["ba do gi ke lo", "whatever", "mo nu pa re", "else"], reference)
    assert (scores["bleu"], scores["chrf"], scores["sentences"]) == pytest.approx((100, 100, 2))
    with pytest.raises(InputError):
        corpus_scores(["a"], reference)


def test_tokenised_bleu_computed_by_hand():
    translated = ["the cat is on the mat today .", "<p>", "a dog saw Ann, here", ""]
    tokens = ["the cat sat on the mat .", "<p>", "a dog saw Ann, here again now then .", ""]
    # Matches of 1 to 4 words: 6 of 8, 3 of 7, 1 of 6, 0 of 5 in the first; all of 5, 4, 3, 2 in the second sentence.
    precisions = (11 / 13, 7 / 11, 4 / 9, 2 / 7)
    found = tokenized_bleu(translated, tokens)
    assert found.score == pytest.approx(100 * math.exp(1 - 16 / 13) * math.prod(precisions) ** (1 / 4), abs=1e-9)
    assert found.sentences == 2 and "tok:none" in found.signature and "smooth:none" in found.signature
    assert tokenized_bleu(["A B C D"], ["a b c d"]).score == 0


def test_hter_with_case():
    found = human_targeted_error_rate(["A cat . ran", "x", "the dog"], ["a cat . ran", "<p>", "the dog"])
    assert found.score == pytest.approx(100 / 6) and "case:mixed" in found.signature

import math

import pytest
from sacrebleu.metrics import TER

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.scores import corpus_scores, human_targeted_error_rate, tokenized_bleu

REFERENCE = ["ba do gi ke lo", "<p>", "mo nu pa re", ""]
TRANSLATED = ["the cat is on the mat today .", "<p>", "a dog saw Ann, here", ""]
TOKENS = ["the cat sat on the mat .", "<p>", "a dog saw Ann, here again now then .", ""]


def test_a_perfect_translation_scores_100_and_marks_do_not_count():
    scores = corpus_scores(["ba do gi ke lo", "whatever", "mo nu pa re", "else"], REFERENCE)
    assert scores.bleu == pytest.approx(100) and scores.chrf == pytest.approx(100) and scores.sentences == 2
    assert "tok:13a" in scores.bleu_signature and "nc:6" in scores.chrf_signature
    assert corpus_scores(["ba do gi lo ke", "", "mo re", ""], REFERENCE).bleu < 60


def test_unequal_or_empty_texts_are_refused():
    with pytest.raises(InputError, match="1 lines translated, but the reference has 4"):
        corpus_scores(["a"], REFERENCE)
    with pytest.raises(InputError, match="marks only"):
        corpus_scores(["", "<p>"], ["", "<p>"])


def test_is_bleu_counted_by_hand():
    # Matches of 1 to 4 words: 6 of 8, 3 of 7, 1 of 6, 0 of 5 in the first; all of 5, 4, 3, 2 in the second sentence.
    precisions = (11 / 13, 7 / 11, 4 / 9, 2 / 7)
    brevity = math.exp(1 - 16 / 13)
    found = tokenized_bleu(TRANSLATED, TOKENS)
    assert found.bleu == pytest.approx(100 * brevity * math.prod(precisions) ** (1 / 4), abs=1e-9)
    assert found.sentences == 2 and "tok:none" in found.signature and "smooth:none" in found.signature


def test_longer_than_the_reference_is_no_matter_of_brevity():
    found = tokenized_bleu(["a dog saw Ann , here"], ["a dog saw Ann ,"])
    assert found.bleu == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** (1 / 4), abs=1e-9)


def test_nothing_is_smoothed_and_case_counts():
    assert tokenized_bleu(TRANSLATED[:1], TOKENS[:1]).bleu == 0
    assert tokenized_bleu(["A B C D"], ["a b c d"]).bleu == 0
    assert tokenized_bleu(["a b c d"], ["a b c d"]).bleu == pytest.approx(100)


def test_unequal_or_empty_tokens_are_refused():
    with pytest.raises(InputError, match="3 lines translated, but the reference has 4"):
        tokenized_bleu(TRANSLATED[:3], TOKENS)
    with pytest.raises(InputError, match="marks only"):
        tokenized_bleu(["x", "y"], ["", "<p>"])


def test_edits_are_counted_over_tokens_with_case():
    found = human_targeted_error_rate(["A cat . ran", "x", "the dog"], ["a cat . ran", "<p>", "the dog"])
    expected = TER(case_sensitive=True).corpus_score(["A cat . ran", "the dog"], [["a cat . ran", "the dog"]])
    assert found.hter == expected.score == pytest.approx(100 / 6) and "case:mixed" in found.signature

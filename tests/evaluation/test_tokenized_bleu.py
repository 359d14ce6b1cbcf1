import math

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.tokenized_bleu import tokenized_bleu

HYPOTHESES = ["the cat is on the mat today .", "<p>", "a dog saw Ann, here", ""]
REFERENCE = ["the cat sat on the mat .", "<p>", "a dog saw Ann, here again now then .", ""]


def test_is_bleu_counted_by_hand():
    # Matches of 1 to 4 words: 6 of 8, 3 of 7, 1 of 6, 0 of 5 in the first; all of 5, 4, 3, 2 in the second sentence.
    precisions = (11 / 13, 7 / 11, 4 / 9, 2 / 7)
    brevity = math.exp(1 - 16 / 13)
    found = tokenized_bleu(HYPOTHESES, REFERENCE)
    assert found.bleu == pytest.approx(100 * brevity * math.prod(precisions) ** (1 / 4), abs=1e-9)
    assert found.sentences == 2 and "tok:none" in found.signature and "smooth:none" in found.signature


def test_longer_than_the_reference_is_no_matter_of_brevity():
    found = tokenized_bleu(["a dog saw Ann , here"], ["a dog saw Ann ,"])
    assert found.bleu == pytest.approx(100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** (1 / 4), abs=1e-9)


def test_nothing_is_smoothed_and_case_counts():
    assert tokenized_bleu(HYPOTHESES[:1], REFERENCE[:1]).bleu == 0
    assert tokenized_bleu(["A B C D"], ["a b c d"]).bleu == 0
    assert tokenized_bleu(["a b c d"], ["a b c d"]).bleu == pytest.approx(100)


def test_bad_input():
    with pytest.raises(InputError, match="3 lines translated, but the reference has 4"):
        tokenized_bleu(HYPOTHESES[:3], REFERENCE)
    with pytest.raises(InputError, match="marks only"):
        tokenized_bleu(["x", "y"], ["", "<p>"])

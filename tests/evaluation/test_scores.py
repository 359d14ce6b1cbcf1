import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.scores import corpus_scores

REFERENCE = ["ba do gi ke lo", "<p>", "mo nu pa re", ""]


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

"""F1 of pronouns, counted by hand."""

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.pronoun_f1 import PRONOUNS, PronounF1Options, parse_words
from docnmt_fairseq.evaluation.words import words_of
from tests.support.scored import reference_set

REFERENCE = [["Er sah sie, und sie sah ihn.", "Keiner da."], ["Es ist hier."]]


def make(words="de", *references):
    return METRICS["pronoun-f1"](reference_set(REFERENCE, *references), PronounF1Options(words))


def test_matches_within_a_sentence_of_the_first_reference():
    metric = make("de", [["es es", "es"], ["es"]])
    rows = metric.statistics([["Sie sah, dass sie, sie und es kamen.", "Er"], ["ES ist hier."]])
    assert rows == [[2, 4, 4], [0, 1, 0], [1, 1, 1]]
    precision, recall = 3 / 6, 3 / 5
    assert metric.corpus_score(rows) == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    assert metric.corpus_score(metric.statistics(REFERENCE)) == 100
    assert metric.score([0, 0, 0]) == 0


@pytest.mark.parametrize(
    "sentence, count",
    [
        ("Klicken Sie hier.", 0),
        ("Wir danken Ihnen für Ihre Hilfe und Ihr Vertrauen; nach Ihrem, Ihren, Ihrer, Ihres.", 0),
        ("Wir sahen sie und ihr Haus, und danken ihnen.", 3),
        ("Sie ist groß. Ihr Haus auch.", 2),
        ("Er rief: „Sie ist da!“ Sie war da.", 3),
        ("SIE kam, weil Er und ES kamen.", 3),
        ("Sie wissen, dass Sie warten.", 1),
    ],
)
def test_polite_german_is_not_the_third_person(sentence, count):
    assert make().statistics([[sentence, ""], [""]])[0][1] == count


def test_listed_words_ignore_case():
    assert words_of("Qu'il VIENNE, l’Éléphant_2 – он-то!") == ["qu", "il", "vienne", "l", "éléphant_2", "он", "то"]
    assert make("ER, sie").statistics([["er Erde der sieht ihn, Sie", ""], [""]])[0] == [2, 2, 3]
    assert "pronouns:de|case:mixed|" in make().signature() and "pronouns:er,sie|case:lc|" in make("er,sie").signature()


@pytest.mark.parametrize("language", PRONOUNS)
def test_lists_are_single_words(language):
    words = PRONOUNS[language]
    assert len(words) > 8 and len(set(words)) == len(words) and all(words_of(word) == [word] for word in words)
    assert parse_words(language) == set(words)


@pytest.mark.parametrize("words", [None, " , ", "il,elle"])
def test_bad_words(words):
    with pytest.raises(InputError):
        make(words)


def test_word_that_is_also_a_language_code():
    assert parse_words("es,") == {"es"} and "ella" in parse_words("es")

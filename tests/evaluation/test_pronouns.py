"""F1 of pronouns, counted by hand."""

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.pronouns import PronounOptions, pronouns_of
from docnmt_fairseq.evaluation.pronouns import PRONOUNS
from docnmt_fairseq.evaluation.words import words_of
from tests.support.scored import reference_set

REFERENCE = [["Er sah sie, und sie sah ihn.", "Keiner da."], ["Es ist hier."]]


def make(words="de", *references):
    return METRICS["pronouns"](reference_set(REFERENCE, *references), PronounOptions(words))


def test_matches_are_clipped_within_a_sentence():
    metric = make("de", [["es es", "es"], ["es"]])  # of several references, the first
    (rows,) = metric.statistics([[["Sie sah, dass sie, sie und es kamen.", "Er"], ["ES ist hier."]]])
    assert rows == [[2, 4, 4], [0, 1, 0], [1, 1, 1]]
    precision, recall = 3 / 6, 3 / 5
    assert metric.corpus_score(rows) == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    assert metric.corpus_score(metric.statistics([REFERENCE])[0]) == 100
    assert metric.score([0, 0, 0]) == 0


POLITE = [
    ("Klicken Sie hier.", 0),
    ("Wir danken Ihnen für Ihre Hilfe und Ihr Vertrauen; nach Ihrem, Ihren, Ihrer, Ihres.", 0),
    ("Wir sahen sie und ihr Haus, und danken ihnen.", 3),
    ("Sie ist groß. Ihr Haus auch.", 2),
    ("Er rief: „Sie ist da!“ Sie war da.", 3),
    ("SIE kam, weil Er und ES kamen.", 3),
    ("Sie wissen, dass Sie warten.", 1),
]


@pytest.mark.parametrize("sentence, count", POLITE)
def test_polite_german_is_not_the_third_person(sentence, count):
    (rows,) = make().statistics([[[sentence, ""], [""]]])
    assert rows[0][1] == count
    of_words = make("sie,ihr,er").statistics([[["Klicken Sie, Ihr und Er.", ""], [""]]])
    assert of_words[0][0][1] == 3  # words are looked for without case


def test_a_polite_reference_has_no_third_person():
    polite = [["Klicken Sie hier.", "Wir danken Ihnen für Ihre Hilfe."]]
    with pytest.raises(InputError, match="--pronouns de: ref0 has none of these words"):
        METRICS["pronouns"](reference_set(polite), PronounOptions("de"))


def test_signatures_say_whether_case_counts():
    assert "pronouns:de|case:mixed|" in make().signature() and "pronouns:er,sie|case:lc|" in make("er,sie").signature()


def test_words_are_whole_and_without_case():
    assert words_of("Qu'il VIENNE, l’Éléphant_2 – он-то!") == ["qu", "il", "vienne", "l", "éléphant_2", "он", "то"]
    assert make("ER, sie").words == {"er", "sie"}
    (rows,) = make("er, sie").statistics([[["er Erde der sieht ihn", ""], [""]]])
    assert rows[0] == [1, 1, 3]


@pytest.mark.parametrize("language", PRONOUNS)
def test_the_lists_are_single_words(language):
    words = PRONOUNS[language]
    assert len(words) > 8 and len(set(words)) == len(words) and all(words_of(word) == [word] for word in words)
    assert pronouns_of(language) == set(words)


@pytest.mark.parametrize("words, message", [
    (None, "--metrics pronouns: which ones. Give --pronouns WORD,WORD,... or a language: de, en, es, fr, ru"),
    ("er,sie ihn", "--pronouns er,sie ihn: 'sie ihn' is no single word of letters; commas stand between words"),
    (" , ", "--pronouns  , : no words; give them with commas between, or a language"),
    ("il,elle", "--pronouns il,elle: ref0 has none of these words"),
])  # fmt: skip
def test_words_that_cannot_be_meant(words, message):
    with pytest.raises(InputError, match=message):
        make(words)


def test_a_word_that_is_also_a_language():
    assert pronouns_of("es,") == {"es"} and "ella" in pronouns_of("es")

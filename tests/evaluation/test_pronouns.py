"""F1 of pronouns and accuracy at marked sentences, counted by hand."""

import os
import random
from pathlib import Path

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.pronouns import PronounF1Options, PronounOptions, parse_words
from docnmt_fairseq.evaluation.texts import read_references
from docnmt_fairseq.evaluation.words import words_of
from tests.support.scored import reference_set, write

KYOTO = Path(os.environ.get("DOCNMT_SHARED_DATA", "../shared/data")) / "kyoto-ja-en"
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


def test_word_that_is_also_a_language_code():
    assert parse_words("es,") == {"es"} and "ella" in parse_words("es")


def test_accuracy_at_marked_sentences(tmp_path):
    sentences = ["He left.", "A dog.", "His sister came.", "They saw it.", "She did."]
    reference = write(tmp_path / "ref", [*sentences[:2], "", *sentences[2:], ""])
    marks = write(tmp_path / "marks.tsv", ["0\the", "3\tshe", "4\tthey", "5\tshe"])
    metric = METRICS["pronouns"](read_references([reference]), PronounOptions(str(marks)))
    assert metric.marks == ["he", None, "she", "they", "she"]
    # Correct in another form, not marked, another pronoun first, correct, without a pronoun.
    translation = [["Peter took HIS hat; she ...", "It barks."], ["He saw her.", "Themselves, it said.", "Ann did."]]
    rows = metric.statistics(translation)
    assert [row[:2] for row in rows] == [[1, 1], [0, 0], [0, 1], [1, 1], [0, 1]]
    assert metric.corpus_score(rows) == 50
    sums = [sum(column) for column in zip(*rows)]
    assert metric.part_scores(sums) == {"he": 100, "she": 0, "they": 100}


@pytest.mark.parametrize("rows", [["0\tI"], ["0\the\tx"], ["2\the"], ["-1\the"]])
def test_bad_marks(tmp_path, rows):
    references = read_references([write(tmp_path / "ref", ["He.", "She.", ""])])
    with pytest.raises(InputError, match=r"marks\.tsv"):
        METRICS["pronouns"](references, PronounOptions(str(write(tmp_path / "marks.tsv", rows))))


@pytest.mark.skipif(not KYOTO.exists(), reason="no kyoto-ja-en in DOCNMT_SHARED_DATA")
def test_marks_of_kyoto():
    """The reference is correct at all marks; sentences in random order are correct by chance only."""
    references = read_references([KYOTO / "test.en"])
    metric = METRICS["pronouns"](references, PronounOptions(str(KYOTO / "test.pronouns.tsv")))
    assert metric.corpus_score(metric.statistics(references.streams[0])) == 100
    sentences = [sentence for document in references.streams[0] for sentence in document]
    random.Random(1).shuffle(sentences)
    assert 10 < metric.corpus_score(metric.statistics([sentences])) < 20

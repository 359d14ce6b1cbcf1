"""Register accuracy and consistency, counted by hand, and labels from files."""

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.texts import read_references
from tests.support.scored import write

REFERENCE = ["Hast du Zeit?", "<p>", "Ja.", "Warten Sie.", "", "Sie kommen.", "Wenn Sie kommen.", ""]
LABELS = ["0\tdu", "3\tSie", "6\tSie"]
# Correct, unlabelled, wrong, unlabelled, no register.
TRANSLATION = ["Hast du?", "<p>", "Ob Sie?", "Warte du.", "", "du", "Wir gehen.", ""]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, lines in (("ref", REFERENCE), ("labels.tsv", LABELS), ("out", TRANSLATION)):
        write(tmp_path / name, lines)
    return tmp_path


def make(name, language="de", **options):
    kind = METRICS[name]
    return kind(read_references(["ref"]), kind.Options(register_language=language, **options))


def score_of(name, lines, **options):
    metric = make(name, **options)
    rows = metric.statistics([[lines[n - 1] for n in document] for document in metric.test_set.lines])
    return rows, metric.corpus_score(rows)


@pytest.mark.parametrize("options", [{"register_labels": "labels.tsv"}, {}], ids=["labels", "reference"])
def test_accuracy(options):
    expected = [[1, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]]
    assert score_of("register", TRANSLATION, **options) == (expected, 50)
    rows, score = score_of("register-of-all", TRANSLATION, **options)
    assert rows == expected and score == pytest.approx(100 / 3)
    rows, score = score_of("register", ["Ja."] * 8, **options)
    assert rows[0] == [0, 0, 1] and score == 0


def test_ambiguous_markers_count_in_translations_only():
    assert make("register").labels[3] is None
    assert score_of("register-of-all", [*REFERENCE[:6], "Sie kommen.", ""])[1] == 100


def test_consistency_of_documents_that_show_a_register_twice():
    rows, score = score_of("register-consistency", ["wenn du", "", "ja", "dein Haus", "", "ja", "ob Sie"])
    assert rows == [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]] and score == 100
    rows, score = score_of("register-consistency", ["wenn du", "", "ja", "ob Sie", "", "wenn Sie", "und Ihnen"])
    assert rows == [[0, 1], [0, 0], [0, 0], [1, 1], [0, 0]] and score == 50
    ambiguous = ["wenn du", "", "Sie kommt.", "dein Haus", "", "ja", "ja"]
    assert score_of("register-consistency", ambiguous)[1] == 100


@pytest.mark.parametrize(
    "rows, place",
    [
        (["0\tdu", "3 Sie"], "labels.tsv:2"),
        (["-1\tdu"], "labels.tsv:1"),
        (["0\tdu", "3\tihr"], "labels.tsv:2"),
        (["1\tdu"], "labels.tsv:1: line 1 of ref"),
        ([], "labels.tsv"),
    ],
)
def test_bad_labels(folder, rows, place):
    write(folder / "labels.tsv", rows)
    with pytest.raises(InputError, match=place):
        make("register", register_labels="labels.tsv")
    with pytest.raises(InputError):
        make("register", language=None)
    write(folder / "ref", ["Ja.", ""])
    with pytest.raises(InputError):
        make("register")

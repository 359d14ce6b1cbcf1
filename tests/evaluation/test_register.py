"""Register accuracy and consistency: counted by hand, labels from files, errors."""

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.texts import read_references
from tests.support.scored import write

REFERENCE = ["Hast du Zeit?", "<p>", "Ja.", "Warten Sie.", "", "Sie kommen.", "Wenn Sie kommen.", ""]
LABELS = ["0\tdu", "3\tSie", "6\tSie"]
# Right, wrong, beyond the labels, none shown at all.
TRANSLATION = ["Hast du?", "<p>", "Ob Sie?", "Warte du.", "", "du", "Wir gehen.", ""]


@pytest.fixture
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
    numbers = metric.test_set.lines
    (rows,) = metric.statistics([[[lines[n - 1] for n in document] for document in numbers]])
    return rows, metric.corpus_score(rows)


@pytest.mark.parametrize("options", [{"register_labels": "labels.tsv"}, {}], ids=["labels", "reference"])
def test_accuracy_of_what_is_shown_and_of_all(folder, options):
    expected = [[1, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]]
    assert score_of("register", TRANSLATION, **options) == (expected, 50)
    rows, score = score_of("register-of-all", TRANSLATION, **options)
    assert rows == expected and score == pytest.approx(100 / 3)


def test_labels_go_before_what_the_reference_shows(folder):
    write(folder / "labels.tsv", ["2\tSie", "", "5\tSie"])  # an empty row is no row
    assert make("register", register_labels="labels.tsv").labels == [None, "Sie", None, "Sie", None]
    assert score_of("register", TRANSLATION, register_labels="labels.tsv")[1] == 50


def test_a_translation_shows_also_what_a_label_leaves_open(folder):
    opened = [*REFERENCE[:6], "Sie kommen.", ""]
    assert score_of("register-of-all", opened)[1] == 100
    assert make("register").labels[3] is None


def test_nothing_shown_is_zero(folder):
    rows, score = score_of("register", ["Ja."] * 8)
    assert score == 0 and rows[0] == [0, 0, 1]
    assert make("register").score([0, 0, 0]) == make("register-of-all").score([0, 0, 0]) == 0
    assert make("register-consistency").score([0, 0]) == 0


def test_consistency_is_of_documents_that_show_a_register_twice(folder):
    rows, score = score_of("register-consistency", ["wenn du", "", "ja", "dein Haus", "", "ja", "ob Sie"])
    assert rows == [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]] and score == 100
    rows, score = score_of("register-consistency", ["wenn du", "", "ja", "ob Sie", "", "wenn Sie", "und Ihnen"])
    assert rows == [[0, 1], [0, 0], [0, 0], [1, 1], [0, 0]] and score == 50
    unsure = ["wenn du", "", "Sie kommt.", "dein Haus", "", "ja", "ja"]
    assert score_of("register-consistency", unsure)[1] == 100


@pytest.mark.parametrize("rows, message", [
    (["0\tdu", "3 Sie"], r"labels.tsv:2: '3 Sie' is not LINE<TAB>REGISTER, such as 12<TAB>du; lines count from 0"),
    (["0\tdu\tmore"], "labels.tsv:1: .* is not LINE<TAB>REGISTER"),
    (["-1\tdu"], "labels.tsv:1: .* is not LINE<TAB>REGISTER"),
    (["0\tdu", "3\tihr"], "labels.tsv:2: no register 'ihr'; --register-language has du, Sie"),
    (["1\tdu"], "labels.tsv:1: line 1 of ref is no sentence; lines count from 0, with marks and empty lines"),
    (["4\tdu"], "labels.tsv:1: line 4 of ref is no sentence"),
    (["8\tdu"], "labels.tsv:1: line 8 of ref is no sentence"),
    (["0\tdu", "3\tSie", "0\tSie"], "labels.tsv:3: line 0 has its register in row 1; leave one of them"),
    ([], "labels.tsv: no line is marked; give rows LINE<TAB>REGISTER, or leave --register-labels out"),
])  # fmt: skip
def test_labels_that_cannot_be_meant(folder, rows, message):
    write(folder / "labels.tsv", rows)
    for name in ("register", "register-of-all"):
        with pytest.raises(InputError, match=message):
            make(name, register_labels="labels.tsv")


def test_a_reference_without_any_register(folder):
    with pytest.raises(InputError, match="ref: no line shows tu or vous for sure: check --register-language, or say"):
        make("register", "fr")


@pytest.mark.parametrize("name", ["register", "register-of-all", "register-consistency"])
def test_the_language_must_be_given(folder, capsys, name):
    command = ["score", "--reference", "ref", "--system", "a=out", "--metrics", name, "--level", "sentence"]
    assert cli.main(command) == 2
    assert f"{METRICS[name].title}: of which language? Give --register-language: de, es, fr, ru" in " ".join(
        capsys.readouterr().err.split()
    )
    assert cli.main([*command, "--register-language", "de"]) == 0
    with pytest.raises(SystemExit):
        cli.main([*command, "--register-language", "xx"])


def test_documents_are_drawn_without_asking_again(folder, capsys):
    command = ["score", "--reference", "ref", "--system", "ref=ref", "--system", "out=out", "--level", "sentence"]
    metrics = ["--metrics", "register", "register-of-all", "register-consistency"]
    given = ["--register-language", "de", "--register-labels", "labels.tsv", "--test", "documents", "--samples", "20"]
    assert cli.main([*command, *metrics, *given]) == 0
    table = capsys.readouterr().out
    assert "ref       100.00           100.00" in table and "register_labels:labels.tsv" in table

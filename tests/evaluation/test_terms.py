"""Terms, counted by hand, and lists that cannot be read."""

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.terms import TermOptions
from docnmt_fairseq.evaluation.texts import References
from tests.support.scored import write

SOURCE = [["Open the File, then the file's window.", "A file  system."], ["Files, profiles.", "Close the window."]]
TERMS = ["file\tDatei|Dateien", "File System\tDateisystem", "", "window\tFenster | Dialog Feld"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "terms.tsv", TERMS)
    return tmp_path


def make(source=SOURCE, terms="terms.tsv"):
    return METRICS["terms"](References(("ref",), [source], source, [[1, 2], [4, 5]]), TermOptions(terms))


def rows_of(*documents):
    return make().statistics([list(documents)])[0]


def test_terms_are_whole_words_and_the_longest(folder):
    assert make().wanted == [{"file": 2, "window": 1}, {"file system": 1}, {}, {"window": 1}]


def test_forms_are_counted_as_often_as_the_source_has_the_term(folder):
    one = ["Datei, DATEI, Datei", "Das Dateisystem"], ["Datei", "Das Fensterchen"]
    assert rows_of(*one) == [[2, 3], [1, 1], [0, 0], [0, 1]]
    other = ["Dateien im Dialog  Feld.", "Das Datei-System"], ["", "Fenster"]
    rows = rows_of(*other)
    assert rows == [[2, 3], [0, 1], [0, 0], [1, 1]] and make().corpus_score(rows) == 60
    assert make().score([0, 0]) == 0


def test_terms_are_no_patterns(folder):
    write(folder / "terms.tsv", ["C++\tC++", "a.b\tx|y"])
    metric = make([["C++ and a.b", "C and aXb"], ["", "c++"]])
    assert metric.wanted == [{"c++": 1, "a.b": 1}, {}, {}, {"c++": 1}]


def test_capitals_of_one_letter_may_be_several(folder):
    write(folder / "terms.tsv", ["street\tStraße"])
    metric = make([["the street, a street", "Street"], ["", ""]])
    assert metric.statistics([[["Die Straße, eine STRASSE", "strasse"], ["", ""]]])[0][:2] == [[2, 2], [1, 1]]


@pytest.mark.parametrize("form, text, found", [
    ("记忆网络", "这是一个模型的记忆网络。", 1),
    ("网络", "记忆网络，GPU网络和网络GPU", 3),
    ("gpu", "使用GPU的网络，不是GPU2。", 1),
    ("3d网络", "一个3D网络。x3D网络", 1),
    ("ファイル", "このファイルを開く", 1),
    ("ไฟล์", "เปิดไฟล์นี้", 1),
    ("𠮷", "大𠮷大", 1),
    ("파일", "파일을 열다: 파일", 1),
])  # fmt: skip
def test_scripts_without_spaces_have_no_ends_of_words(folder, form, text, found):
    write(folder / "terms.tsv", [f"term\t{form}"])
    metric = make([["term term term", "term"], ["term", "term"]])
    assert metric.statistics([[[text, ""], ["", ""]]])[0][0] == [found, 3]


def test_terms_of_a_source_without_spaces(folder):
    write(folder / "terms.tsv", ["网络\tnetwork", "记忆网络\tmemory network"])
    assert make([["模型的记忆网络和网络。", "记忆"], ["", ""]]).wanted[0] == {"记忆网络": 1, "网络": 1}


@pytest.mark.parametrize("rows, message", [
    (["file\tDatei", "window"], "terms.tsv:2: 'window' is not TERM<TAB>FORM|FORM...: a source term, its translations"),
    (["file\tDatei\tmore"], "terms.tsv:1: .* is not TERM<TAB>FORM"),
    (["file\t|"], "terms.tsv:1: .* is not TERM<TAB>FORM"),
    (["file\tDatei", "File\tAkte"], "terms.tsv:2: 'file' stands in row 1 already; give all of its forms there"),
    ([""], "terms.tsv: holds no term; give rows TERM<TAB>FORM"),
    (["Datei\tfile", "Fenster\twindow"], "terms.tsv: the source has none of these 2 terms; right languages?"),
])  # fmt: skip
def test_lists_that_cannot_be_meant(folder, rows, message):
    write(folder / "terms.tsv", rows)
    with pytest.raises(InputError, match=message.replace("|", r"\|")):
        make()


def test_the_option_asks_for_the_metric(folder, capsys):
    for name, lines in (("src", SOURCE[0]), ("ref", ["Datei", "Dateisystem"]), ("out", ["Dateien", "nichts"])):
        write(folder / name, [*lines, ""])
    command = ["score", "--reference", "ref", "--source", "src", "--system", "a=out", "--level", "sentence"]
    assert cli.main([*command, "--metrics", "terms"]) == 2
    assert "--metrics terms: which ones? Give --terms FILE" in capsys.readouterr().err
    assert cli.main([*command, "--terms", "terms.tsv"]) == 0
    assert "terms:terms.tsv" in capsys.readouterr().out
    assert cli.main([*command, "--terms", "nowhere.tsv"]) == 2
    assert "nowhere.tsv: cannot be read" in capsys.readouterr().err

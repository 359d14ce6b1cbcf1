"""Terminology accuracy, counted by hand, and bad glossaries."""

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.terms import TermOptions
from docnmt_fairseq.evaluation.texts import References
from tests.support.scored import write

SOURCE = [["Open the File, then the file's window.", "A file  system."], ["Files, profiles.", "Close the window."]]
TERMS = ["file\tDatei", "File\tDateien", "File System\tDateisystem", "", "window\tFenster | Dialog Feld"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "terms.tsv", TERMS)
    return tmp_path


def make(source=SOURCE):
    return METRICS["terms"](References(("ref",), [source], source, [[1, 2], [4, 5]]), TermOptions("terms.tsv"))


def test_longest_whole_words_of_the_source():
    assert make().required == [{"file": 2, "window": 1}, {"file system": 1}, {}, {"window": 1}]


def test_forms_count_as_often_as_the_term():
    metric = make()
    rows = metric.statistics([["Datei, DATEI, Datei", "Das Dateisystem"], ["Datei", "Das Fensterchen"]])
    assert rows == [[2, 3], [1, 1], [0, 0], [0, 1]]
    rows = metric.statistics([["Dateien im Dialog  Feld.", "Das Datei-System"], ["", "Fenster"]])
    assert rows == [[2, 3], [0, 1], [0, 0], [1, 1]] and metric.corpus_score(rows) == 60
    assert metric.score([0, 0]) == 0


def test_terms_are_literal_and_casefolded(folder):
    write(folder / "terms.tsv", ["C++\tC++", "a.b\tx|y", "street\tStraße"])
    metric = make([["C++ and a.b", "C and aXb"], ["the street, a street", "c++"]])
    assert metric.required == [{"c++": 1, "a.b": 1}, {}, {"street": 2}, {"c++": 1}]
    assert metric.statistics([["", ""], ["Die Straße, eine STRASSE", ""]])[2] == [2, 2]


@pytest.mark.parametrize(
    "form, text, found",
    [
        ("记忆网络", "这是一个模型的记忆网络。", 1),
        ("网络", "记忆网络，GPU网络和网络GPU", 3),
        ("gpu", "使用GPU的网络，不是GPU2。", 1),
        ("3d网络", "一个3D网络。x3D网络", 1),
        ("ファイル", "このファイルを開く", 1),
        ("ไฟล์", "เปิดไฟล์นี้", 1),
        ("𠮷", "大𠮷大", 1),
        ("파일", "파일을 열다: 파일", 1),
    ],
)
def test_scripts_without_spaces(folder, form, text, found):
    write(folder / "terms.tsv", [f"term\t{form}"])
    metric = make([["term term term", "term"], ["term", "term"]])
    assert metric.statistics([[text, ""], ["", ""]])[0] == [found, 3]


def test_source_without_spaces(folder):
    write(folder / "terms.tsv", ["网络\tnetwork", "记忆网络\tmemory network"])
    assert make([["模型的记忆网络和网络。", "记忆"], ["", ""]]).required[0] == {"记忆网络": 1, "网络": 1}


@pytest.mark.parametrize(
    "rows, place",
    [
        (["file\tDatei", "window"], "terms.tsv:2"),
        (["file\t|"], "terms.tsv:1"),
        ([""], "terms.tsv"),
        (["Datei\tfile", "Fenster\twindow"], "terms.tsv"),
    ],
)
def test_bad_glossaries(folder, rows, place):
    write(folder / "terms.tsv", rows)
    with pytest.raises(InputError, match=place):
        make()
    with pytest.raises(InputError):
        METRICS["terms"](References(("ref",), [SOURCE], SOURCE, []), TermOptions())

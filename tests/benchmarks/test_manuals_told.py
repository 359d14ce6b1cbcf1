"""What the sentence-level model is told of documents; test_manuals_small_budget.py trains it."""

import random

import pytest

from benchmarks.experiments.manuals_told import TOLD, projects_of, register_of_document, told, with_facts, write_raw
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.evaluation.texts import read_references

SURE = RULES["de"]()
ENGLISH = ["Click  here.", "Do you have it?", "", "Open it.", "You see.", ""]
GERMAN = ["Klick hier.", "Hast du es?", "", "Öffnen Sie es.", "Das ist gut.", ""]


@pytest.fixture
def folders(tmp_path):
    """A corpus, as it is and as it is prepared: a document in du, of contao, and one in Sie, of which nobody knows."""
    text, raw = tmp_path / "text", tmp_path / "raw"
    for folder in (text, raw):
        folder.mkdir()
    for split in ("train", "valid", "test"):
        (raw / f"{split}.en").write_text("".join(f"{line}\n" for line in ENGLISH), encoding="utf-8")
        (raw / f"{split}.documents.tsv").write_text("0\t2\tcontao\n", encoding="utf-8")
        for side, lines in (("en", ENGLISH), ("de", GERMAN)):
            written = "".join(f"{' '.join(line.split())}\n" for line in lines)
            (text / f"{split}.{side}").write_text(written, encoding="utf-8")
    (raw / "test.register.tsv").write_text("1\tdu\n3\tSie\n", encoding="utf-8")
    return text, raw


def test_facts_stand_before_the_sentence():
    assert told("Open it.", ("contao", "du")) == "contao, du: Open it."
    assert told("Open it.", (None, "Sie")) == "Sie: Open it."
    assert told("Open it.", (None, None)) == "Open it."


def test_the_register_of_a_document_is_that_of_most_sentences():
    assert register_of_document(["Hast du es?", "Haben Sie es?", "Du siehst es."], SURE) == "du"
    assert register_of_document(["Das ist gut."], SURE) is None


def test_projects_are_found_by_what_documents_say(folders):
    text, raw = folders
    projects = projects_of(raw, "test")
    assert projects == {("Click here.", "Do you have it?"): "contao"}
    read = read_references([text / "test.de"], text / "test.en")
    assert list(with_facts(read, projects, SURE, lambda: (True, True))) == [
        ["contao, du: Click here.", "contao, du: Do you have it?"],
        ["Sie: Open it.", "Sie: You see."],
    ]


def test_every_test_set_is_told_what_its_name_says(folders, tmp_path):
    text, raw = folders
    write_raw(text, raw, tmp_path / "told", seed=1)
    first = {name: (tmp_path / "told" / f"{name}.en").read_text(encoding="utf-8").split("\n")[0] for name in TOLD}
    assert first == {
        "test": "Click here.",
        "project": "contao: Click here.",
        "register": "du: Click here.",
        "both": "contao, du: Click here.",
    }
    for name in ("train", "valid", *TOLD):
        written = (tmp_path / "told" / f"{name}.de").read_text(encoding="utf-8")
        assert written == "".join(f"{line}\n" for line in GERMAN)


def test_each_fact_is_left_out_at_times(folders, monkeypatch):
    text, _ = folders
    monkeypatch.setattr(random.Random, "random", lambda self: next(draws))
    draws = iter([0.1, 0.9, 0.9, 0.1, 0.1, 0.1, 0.9, 0.9])  # below 0.25 a fact is left out
    write_raw(text, text.parent / "raw", text.parent / "told", seed=1)
    lines = (text.parent / "told" / "train.en").read_text(encoding="utf-8").split("\n")
    assert lines == ["du: Click here.", "contao: Do you have it?", "", "Open it.", "Sie: You see.", "", ""]

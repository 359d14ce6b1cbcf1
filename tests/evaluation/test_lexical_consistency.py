"""LTCR with known alignments, and the interface to eflomal."""

import shutil

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, MetricOptions
from docnmt_fairseq.evaluation.metrics.lexical_consistency import content_words
from docnmt_fairseq.evaluation.texts import References
from docnmt_fairseq.evaluation.words import align
from tests.support.eflomal import FakeEflomal

SOURCE = [["the Bank, the bank opens", "a bank"], ["bank opens", "river river opens"]]
TRANSLATION = [["die Bank, die BANK öffnet", "ein Ufer"], ["Bank öffnet", "Fluss Strom"]]


@pytest.fixture
def package(monkeypatch, tmp_path):
    return FakeEflomal(tmp_path, monkeypatch)


def make(source=SOURCE, references=(TRANSLATION,)):
    lines = [[1, 2], [4, 5]]
    return METRICS["lexical-consistency"](References(("ref",), list(references), source, lines), MetricOptions())


def test_pairs_of_a_word_within_its_document(package):
    rows = make().statistics(TRANSLATION)
    # bank: 1 of 3 pairs; river: 0 of 1; the third word of the last sentence is unaligned
    assert rows == [[1, 3], [0, 0], [0, 1], [0, 0]]
    assert make().corpus_score(rows) == 25 and make().score([0, 0]) == 0
    assert "aligner:eflomal" in make().signature()


def test_alignment_does_not_depend_on_other_systems(package):
    other = [["x", "y"], ["z", ""]]
    first, second = map(make(references=(TRANSLATION, other)).statistics, (other, TRANSLATION))
    assert first == [[0, 0]] * 4 and second[0] == [1, 3]
    texts = [[target for _, target in seen] for seen in package.seen]
    lines = ["die bank die bank öffnet", "ein ufer", "bank öffnet", "fluss strom"]
    assert texts == [["x", "y", "z", "", *lines, "x", "y", "z", ""], [*lines, *lines, "x", "y", "z", ""]]
    assert [source for source, _ in package.seen[0]][4:6] == ["the bank the bank opens", "a bank"]


def test_content_words_are_long_and_not_frequent():
    documents = [[["with", "bank"], ["open"]], [["with", "open"]], [["with", "2024"]], [["file", "it"]]]
    assert content_words(documents) == {"bank", "open", "file"}
    assert content_words(documents[:3]) == {"with", "bank", "open"}


def test_links_in_both_directions(monkeypatch, tmp_path):
    FakeEflomal(tmp_path, monkeypatch, [(0, 0), (0, 1), (2, 1)], [(0, 0), (1, 1), (2, 1)])
    assert align([["a", "b", "c"]], [["x", "y"]]) == [{0: 0, 2: 1}]


def test_missing_or_failing_eflomal(package, monkeypatch):
    package.write("#!/bin/sh\necho no memory >&2\n")
    with pytest.raises(InputError):
        make().statistics(TRANSLATION)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(InputError):
        make()


@pytest.mark.skipif(shutil.which("eflomal-align") is None, reason="eflomal is not installed")
def test_eflomal():
    source = ["the house", "a house", "the dog", "a dog", ""]
    target = ["das Haus", "ein Haus", "der Hund", "ein Hund", "x"]
    links = align(*([line.split() for line in side] * 30 for side in (source, target)))
    assert len(links) == 150 and links[4] == {} and sum(link == {0: 0, 1: 1} for link in links) > 80

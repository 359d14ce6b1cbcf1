"""LTCR over alignments that are known, and the interface to eflomal; eflomal itself where it is installed."""

import importlib.util
import sys

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation import word_alignment
from docnmt_fairseq.evaluation.metrics import METRICS, MetricOptions
from docnmt_fairseq.evaluation.metrics.lexical_consistency import content_words
from docnmt_fairseq.evaluation.texts import References
from tests.support.eflomal import fake_package

SOURCE = [["the Bank, the bank opens", "a bank"], ["bank opens", "river river opens"]]
TRANSLATION = [["die Bank, die BANK öffnet", "ein Ufer"], ["Bank öffnet", "Fluss Strom"]]


@pytest.fixture
def package(monkeypatch):
    found = fake_package()
    monkeypatch.setitem(sys.modules, "eflomal", found)
    return found


def make(source=SOURCE, references=(TRANSLATION,)):
    lines = [[1, 2], [4, 5]]
    return METRICS["lexical-consistency"](References(("ref",), list(references), source, lines), MetricOptions())


def test_pairs_of_a_word_in_its_document(package):
    (rows,) = make().statistics([TRANSLATION])
    # bank: 1 of 3 pairs alike; river: none of 1; the third word of the last sentence has no link
    assert rows == [[1, 3], [0, 0], [0, 1], [0, 0]]
    assert make().corpus_score(rows) == 25 and make().score([0, 0]) == 0


def test_a_system_is_aligned_with_the_references_alone(package):
    other = [["x", "y"], ["z", ""]]
    first, second = make(references=(TRANSLATION, other)).statistics([other, TRANSLATION])
    assert first == [[0, 0]] * 4 and second[0] == [1, 3]
    texts = [[target for _, target in seen] for seen in package.seen]
    lines = ["die bank die bank öffnet", "ein ufer", "bank öffnet", "fluss strom"]
    assert texts == [["x", "y", "z", "", *lines, "x", "y", "z", ""], [*lines, *lines, "x", "y", "z", ""]]
    assert [source for source, _ in package.seen[0]][4:6] == ["the bank the bank opens", "a bank"]


def test_content_words_are_long_and_not_in_most_documents():
    documents = [[["with", "bank"], ["open"]], [["with", "open"]], [["with", "2024"]], [["file", "it"]]]
    assert content_words(documents) == {"bank", "open", "file"}
    assert content_words(documents[:3]) == {"with", "bank", "open"}


def test_links_of_both_directions(monkeypatch):
    package = fake_package(lambda n: [(0, 0), (0, 1), (2, 1)], lambda n: [(0, 0), (1, 1), (2, 1)])
    monkeypatch.setitem(sys.modules, "eflomal", package)
    assert word_alignment.align([["a", "b", "c"]], [["x", "y"]]) == [{0: 0, 2: 1}]


def test_a_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(InputError, match=r"need the package eflomal .*pip install 'docnmt_fairseq\[alignment\]'"):
        make()


def test_a_program_that_failed(package, monkeypatch):
    monkeypatch.setattr(package.Aligner, "align", lambda *_, **__: None)
    with pytest.raises(InputError, match="eflomal did not align all sentences"):
        make().statistics([TRANSLATION])


def test_the_signature_names_the_aligner(package):
    assert "aligner:eflomal" in make().signature()


@pytest.mark.skipif(importlib.util.find_spec("eflomal") is None, reason="eflomal is not installed")
def test_eflomal_itself():
    source, target = (
        ["the house", "a house", "the dog", "a dog", ""],
        ["das Haus", "ein Haus", "der Hund", "ein Hund", "x"],
    )
    pairs = [[line.split() for line in side] * 30 for side in (source, target)]
    links = word_alignment.align(*pairs)
    assert len(links) == 150 and links[4] == {} and sum(link == {0: 0, 1: 1} for link in links) > 80

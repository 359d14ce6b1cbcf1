"""Normalisation of sentences and documents."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.text import TextCounts, normalise, normalise_documents
from docnmt_fairseq.errors import InputError


@given(st.text())
def test_normalise_is_idempotent(text):
    once = normalise(text)
    assert normalise(once) == once == unicodedata.normalize("NFC", once) == " ".join(once.split())
    assert not any(unicodedata.category(character) == "Cc" for character in once)


@pytest.mark.parametrize(
    "raw, clean",
    [
        (" a\t\u00a0b\u3000c\x85d\u2028e ", "a b c d e"),
        ("e\u0301", "\u00e9"),
        ("e\u200b\u0301 \x07x\ufeff\xady", "\u00e9 xy"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\u200d \x00\u00a0", ""),
        ("a\ud83d b \ude00c \U0001f600", "a b c \U0001f600"),
        ("\udcff", ""),
    ],
)
def test_normalise(raw, clean):
    assert normalise(raw) == clean


def document(*paragraphs):
    lines = [[(10 * p + s, 20 * p + s) for s in range(len(paragraph))] for p, paragraph in enumerate(paragraphs, 1)]
    return Document([list(paragraph) for paragraph in paragraphs], ("x.en", "x.de"), lines)


def test_counts():
    counts = TextCounts()
    documents = [document([("a b", "A")], [("c", "C D E")]), document([("d", "D")])]
    kept = list(normalise_documents(documents, "error", counts))
    assert kept == documents
    assert counts == TextCounts(2, 2 + 1, 3, 2, 0, [4, 5], non_joiners=[0, 0])


def test_empty_sentence_is_refused_or_dropped():
    documents = [document([("a", "A"), ("b", " \x07")], [("\u200b", "C")]), document([("", "")])]
    with pytest.raises(InputError, match=r"x\.de:21: .*--on-empty drop"):
        list(normalise_documents(documents, "error", TextCounts()))
    counts = TextCounts()
    assert list(normalise_documents(documents, "drop", counts)) == [document([("a", "A")])]
    assert (counts.documents, counts.paragraphs, counts.sentences, counts.dropped_pairs) == (1, 1, 1, 3)


@pytest.mark.parametrize("on_empty", ["error", "drop"])
def test_sentence_that_reads_as_a_boundary_is_an_error(on_empty):
    with pytest.raises(InputError, match=r"x\.en:10: .*<p>"):
        list(normalise_documents([document([("<\u200bp>", "P")])], on_empty, TextCounts()))

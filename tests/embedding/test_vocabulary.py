import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.embedding.words import Vocabulary
from tests.reference import embedding as reference
from tests.support.documents import write_lines

TOKENS = st.lists(st.sampled_from("abc?"), max_size=7)


@settings(max_examples=50)
@given(st.sets(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("_".join), min_size=1), TOKENS)
def test_segmentation_into_the_fewest_phrases_and_unknown_words(words, tokens):
    words = sorted(words)
    known = {tuple(word.split("_")): number for number, word in enumerate(words)}
    found = Vocabulary(words, phrases=True).encode([" ".join(tokens)]).ids.tolist()
    assert found == reference.fewest_parts(tokens, known, len(words))


def test_phrases_with_spaces_and_underscores():
    words = ["united", "states", "united states", "of", "new_york"]
    text = ["the united states of new york", "states united", "new_york new york"]
    with_phrases = Vocabulary(words, phrases=True).encode(text)
    assert with_phrases.ids.tolist() == [5, 2, 3, 4, 1, 0, 4, 4] and with_phrases.lengths.tolist() == [4, 2, 2]
    assert Vocabulary(words).encode(text[2:]).ids.tolist() == [4, 5, 5]


def test_lowercase_and_subwords():
    words = ["haus", "häuser"]
    assert Vocabulary(words, lowercase=True).encode(["Haus HÄUSER"]).ids.tolist() == [0, 1]
    assert Vocabulary(words).encode(["Haus haus"]).ids.tolist() == [2, 0]
    assert Vocabulary(words, remove_bpe="sentencepiece").encode(["▁hä user ▁haus"]).ids.tolist() == [1, 0]
    assert Vocabulary(words, remove_bpe="@@ ").encode(["hä@@ user haus"]).ids.tolist() == [1, 0]


def test_files_are_read_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("docnmt_fairseq.embedding.words.CHUNK", 2)
    write_lines(tmp_path / "a", ["x y", "", "<p>", "y", "z"])
    write_lines(tmp_path / "b", ["x", ""])
    chunks = list(Vocabulary(["x", "y"]).encode_files([tmp_path / "a", tmp_path / "b"]))
    assert [chunk.ids.tolist() for chunk in chunks] == [[0, 1, 1], [2, 0]]
    assert [chunk.lengths.tolist() for chunk in chunks] == [[2, 1], [1, 1]]


@pytest.mark.parametrize("options", [{}, {"lowercase": True}, {"phrases": True}, {"remove_bpe": "@@ "}], ids=str)
def test_dictionary_indices_give_the_words_of_the_text(options):
    symbols = ["<s>", "</s>", "a", "B", "b", "c@@", "d", "cd"]
    sentences = [np.array([2, 3, 4, 1]), np.array([1]), np.array([5, 6, 7, 2, 1])]
    vocabulary = Vocabulary(["a", "b", "cd", "a_B"], **options)
    found = vocabulary.of_tokens(symbols)(sentences)
    wanted = vocabulary.encode(["a B b", "", "c@@ d cd a"])
    assert found.ids.tolist() == wanted.ids.tolist() and found.lengths.tolist() == wanted.lengths.tolist()

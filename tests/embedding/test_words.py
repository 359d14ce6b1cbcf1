"""Word vectors from files and checkpoints, and the lookup of words in sentences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.embedding.words import Vocabulary, read_checkpoint_vectors, read_text_vectors
from docnmt_fairseq.errors import InputError
from tests.reference import embedding as reference
from tests.support import toy
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


@pytest.mark.parametrize("options", [{}, {"lowercase": True}, {"phrases": True}, {"remove_bpe": "@@ "}], ids=str)
def test_dictionary_indices_give_the_words_of_the_text(options):
    symbols = ["<s>", "</s>", "a", "B", "b", "c@@", "d", "cd"]
    sentences = [np.array([2, 3, 4, 1]), np.array([1]), np.array([5, 6, 7, 2, 1])]
    vocabulary = Vocabulary(["a", "b", "cd", "a_B"], **options)
    found = vocabulary.of_tokens(symbols)(sentences)
    wanted = vocabulary.encode(["a B b", "", "c@@ d cd a"])
    assert found.ids.tolist() == wanted.ids.tolist() and found.lengths.tolist() == wanted.lengths.tolist()


@pytest.mark.parametrize("header", [[], ["4 2"]], ids=["GloVe", "word2vec"])
def test_text_files_with_and_without_a_header(tmp_path, caplog, header):
    write_lines(tmp_path / "vec", [*header, "a 1 2", "b -0.5 1e-3 ", "new york 3 4", "a 7 7"])
    found = read_text_vectors(tmp_path / "vec")
    assert found.words == ["a", "b", "new york"] and found.vectors.dtype == np.float32
    np.testing.assert_allclose(found.vectors, [[1, 2], [-0.5, 1e-3], [3, 4]])
    assert "1 repeated words" in caplog.text


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    return toy.train(data_bin, tmp_path_factory.mktemp("training"), "--max-update", "1")


def test_embeddings_of_a_checkpoint(data_bin, checkpoint):
    found = read_checkpoint_vectors(checkpoint, data_bin)
    _, task, _ = toy.build(data_bin)
    assert set("abcde") <= set(found.words) and not {"<unk>", "</s>", "<pad>", "<p>"} & set(found.words)
    embeddings = toy.state(checkpoint)["encoder.embed_tokens.weight"]
    for word, vector in zip(found.words, found.vectors):
        np.testing.assert_array_equal(vector, embeddings[task.source_dictionary.index(word)].float().numpy())


def test_checkpoints_with_other_dictionaries_are_errors(data_bin, checkpoint, tmp_path):
    other = toy.with_other_words(data_bin, tmp_path / "other", side="src")
    with pytest.raises(InputError):
        read_checkpoint_vectors(checkpoint, other)

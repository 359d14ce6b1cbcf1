"""Sentence vectors of all methods, and model files."""

import numpy as np
import pytest

from docnmt_fairseq.embedding import Settings
from docnmt_fairseq.embedding.methods import METHODS, fit_context_vector
from docnmt_fairseq.embedding.model import SentenceEmbedding, fit
from docnmt_fairseq.embedding.words import WordVectors
from tests.reference import embedding as reference
from tests.support.documents import write_lines

WORDS = list("abcdef")
VECTORS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32) + np.float32(0.5)
CORPUS = ["a b a", "c a", "<p>", "b b d ?", "", "a e e e", "? c", ""]
SENTENCES = ["a b c", "? ?", "f", "a a ? e d", ""]


@pytest.fixture
def corpus(tmp_path):
    write_lines(tmp_path / "corpus", CORPUS)
    return tmp_path / "corpus"


def model(corpus, method, **settings):
    return fit(WordVectors(WORDS, VECTORS), [corpus], Settings(method, **settings))


def of_words(sentence):
    return [VECTORS[WORDS.index(word)].astype(float) for word in sentence.split() if word in WORDS]


def embed(fitted, sentences=SENTENCES):
    return fitted.embed(fitted.vocabulary.encode(sentences))


def test_context_aware_re_embedding(corpus):
    fitted = model(corpus, "ca-sem", iterations=4)
    v_0, _ = fit_context_vector(VECTORS.astype(float), fitted.counts, 4)
    np.testing.assert_allclose(fitted.learnt, v_0, rtol=1e-5)
    wanted = [reference.sentence(of_words(s), s.count("?"), v_0) for s in SENTENCES]
    np.testing.assert_allclose(embed(fitted), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(embed(fitted)[1], 2 * fitted.learnt, rtol=1e-6)  # |s| v_0 ([Z] sec. 3.1.2)


def test_context_sensitive_part(corpus):
    fitted = model(corpus, "ca-sem-sensitive", iterations=4)
    wanted = []
    for words in map(of_words, SENTENCES):
        parts = zip(*reference.step_1(words, fitted.learnt.astype(float)))
        wanted.append(sum(((1 - chi) * of_word for of_word, chi in parts), np.zeros(4)))
    np.testing.assert_allclose(embed(fitted), wanted, rtol=1e-4, atol=1e-5)
    assert not embed(fitted)[1].any()


def test_average(corpus):
    wanted = [sum(of_words(s), np.zeros(4)) / max(len(s.split()), 1) for s in SENTENCES]
    np.testing.assert_allclose(embed(model(corpus, "average")), wanted, rtol=1e-4, atol=1e-6)


def test_smooth_inverse_frequency(corpus):
    fitted = model(corpus, "sif", smoothing=0.01)
    share = fitted.counts / fitted.counts.sum()

    def mean(sentence):
        weighed = [
            0.01 / (0.01 + share[WORDS.index(w)]) * VECTORS[WORDS.index(w)] for w in sentence.split() if w != "?"
        ]
        return sum(weighed, np.zeros(4)) / max(len(sentence.split()), 1)

    means = np.array([mean(s) for s in CORPUS if s not in ("", "<p>")])
    _, _, directions = np.linalg.svd(means)
    assert abs(fitted.learnt @ directions[0]) == pytest.approx(1, abs=1e-5)
    remove = np.eye(4) - np.outer(directions[0], directions[0])
    np.testing.assert_allclose(embed(fitted), [remove @ mean(s) for s in SENTENCES], rtol=1e-4, atol=1e-5)


def test_first_component_uses_a_sample_spread_over_the_corpus(tmp_path, monkeypatch):
    write_lines(tmp_path / "corpus", ["a", "b", "c", "d", "e", "f", "a"])
    write_lines(tmp_path / "sample", ["a", "d", "a"])
    wanted = model(tmp_path / "sample", "sif", smoothing=1e9).learnt  # every word weighs 1
    monkeypatch.setattr("docnmt_fairseq.embedding.model.SAMPLE", 3)
    monkeypatch.setattr("docnmt_fairseq.embedding.words.CHUNK", 2)
    found = model(tmp_path / "corpus", "sif", smoothing=1e9).learnt
    assert abs(found @ wanted) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", list(METHODS))
def test_vector_of_a_sentence_is_independent_of_others(corpus, method):
    fitted = model(corpus, method)
    together = embed(fitted, SENTENCES * 5)
    for number, sentence in enumerate(SENTENCES):
        np.testing.assert_array_equal(embed(fitted, [sentence])[0], together[number])


def test_saved_model_is_loaded(corpus, tmp_path):
    fitted = model(corpus, "sif", lowercase=True, phrases=True)
    fitted.save(tmp_path / "model.npz")
    loaded = SentenceEmbedding.load(tmp_path / "model.npz")
    assert loaded.settings == fitted.settings and loaded.words == fitted.words
    np.testing.assert_array_equal(embed(loaded), embed(fitted))

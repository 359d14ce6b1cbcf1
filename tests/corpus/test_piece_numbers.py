"""Sentences to numbers straight away, against the way through the text of their pieces."""

import pytest
import sentencepiece
from fairseq.data import Dictionary
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.corpus import transform
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.dictionaries import dictionary_from_model
from docnmt_fairseq.corpus.items import Numbering
from docnmt_fairseq.corpus.language_tokens import beginning_with
from docnmt_fairseq.corpus.piece_numbers import PieceNumbering
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.subwords import SubwordOptions, subword_encoder, train_subword_model
from docnmt_fairseq.corpus.transform import transform_lines
from docnmt_fairseq.errors import InputError
from tests.support.documents import write_lines

TEXT = "the cat sat\nwe saw the cat\nthat hat was that\n"


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "text").write_text(TEXT)
    options = SubwordOptions(kind=request.param, vocab_size=18, character_coverage=1.0, normalization="nmt_nfkc")
    train_subword_model([folder / "text"], folder / "model", options)
    dictionary_from_model(folder / "model", folder / "dict", ("☃☃", "q"))
    return folder / "model", Dictionary.load(str(folder / "dict"))


def by_text(model, dictionary, token, lines):
    return Numbering(dictionary)(transform_lines(lines, beginning_with(token, subword_encoder(model))))


# Known and unknown characters, what the dictionary has and the model takes for unknown, a mark within a sentence.
PART = st.sampled_from(["the", "cat", "sat", "s", "☃", "☃☃", "q", "q<s>", "<pad>", "</s>", "<p>", "x y", "▁", "ﬀ", "é"])
SENTENCE = st.lists(PART, min_size=1, max_size=5).map(" ".join).filter(lambda line: line not in ("<p>", "▁"))
LINE = st.one_of(SENTENCE, st.sampled_from(["", "<p>"]))


@pytest.mark.parametrize("token", [None, "q", "__none__"])
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINE, max_size=8))
def test_numbers_are_those_of_the_text(model, token, lines):
    wanted = by_text(*model, token, lines)
    try:
        found = PieceNumbering(*model, token)(lines, "x", 1)
    except InputError:
        kept = [line for line in lines if subword_encoder(model[0])([line])[0].strip() in ("", "<p>")]
        assert [line for line in kept if line not in ("", "<p>")]
        return
    assert found.sizes.tolist() == wanted.sizes.tolist() and found.tokens.tolist() == wanted.tokens.tolist()


@pytest.mark.parametrize("token", [None, "q"])
def test_a_sentence_that_becomes_nothing_is_refused(model, token):
    assert beginning_with(token, subword_encoder(model[0]))(["\u200b"]) == [""]
    with pytest.raises(InputError, match=r"file:12: nothing is left of this sentence"):
        PieceNumbering(*model, token)(["the cat", "", "\u200b"], "file", 10)


def test_models_that_put_no_space_before_a_sentence(tmp_path):
    """There an unknown piece, of which the dictionary is asked, may be the first of its sentence."""
    (tmp_path / "text").write_text(TEXT)
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"),
        model_prefix=str(tmp_path / "m"),
        vocab_size=18,
        hard_vocab_limit=False,
        add_dummy_prefix=False,
    )
    dictionary_from_model(tmp_path / "m.model", tmp_path / "dict", ("☃☃", "q"))
    model, lines = (tmp_path / "m.model", Dictionary.load(str(tmp_path / "dict"))), ["cat", "q sat", "☃☃", "the", "q"]
    found, wanted = PieceNumbering(*model)(lines, "x", 1), by_text(*model, None, lines)
    assert found.tokens.tolist() == wanted.tokens.tolist()


def test_a_sentence_that_becomes_a_mark_is_refused(model, monkeypatch):
    numbering = PieceNumbering(*model)
    monkeypatch.setattr(numbering, "_encode", lambda sentences: [numbering._marks["<p>"] for _ in sentences])
    with pytest.raises(InputError, match=r"file:1: nothing is left of this sentence"):
        numbering(["a model that puts nothing before it"], "file", 1)
    assert numbering(["<p>"], "file", 1).sizes.tolist() == [2]


def test_no_lines(model):
    assert PieceNumbering(*model)([], "x", 1).sizes.tolist() == []


def test_a_shard_counts_its_lines_over_batches(tmp_path, monkeypatch):
    for language in ("en", "de"):
        write_lines(tmp_path / f"text.{language}", 8 * [*TEXT.splitlines(), ""])
    begun, call = {}, PieceNumbering.__call__

    def noted(numbering, lines, path, first):
        begun.setdefault(path, []).append(first)
        return call(numbering, lines, path, first)

    monkeypatch.setattr(transform, "BATCH", 5)
    monkeypatch.setattr(PieceNumbering, "__call__", noted)
    text, options = str(tmp_path / "text"), {"vocab_size": 18, "tokenizer": "none", "truecase": False}
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=text, valid=[text], test=[text], shards=2, **options))
    assert len(begun) == 4 and set(map(tuple, begun.values())) == {(1, 6, 11, 16)}

"""Tokenisers, truecasers and their inverses."""

import importlib.util

import pytest

from docnmt_fairseq.corpus.tokenizers import detokenizer, tokenizer, train_truecaser, truecaser

needs_jieba = pytest.mark.skipif(importlib.util.find_spec("jieba") is None, reason="jieba is not installed")


@pytest.mark.parametrize(
    "language, sentence, tokens",
    [
        ("en", 'Isn\'t this (Smith) 3.5%, "or" so?', 'Isn \'t this ( Smith ) 3.5 % , " or " so ?'),
        ("es", "¿Qué dice, Dr. Ruiz?", "¿ Qué dice , Dr. Ruiz ?"),
        ("de", "z.B. das 2. Haus.", "z.B. das 2. Haus ."),
    ],
)
def test_moses_round_trip(language, sentence, tokens):
    assert tokenizer("moses", language)(sentence) == tokens
    assert detokenizer("moses", language)(tokens) == sentence


@needs_jieba
def test_jieba_round_trip():
    sentence = "我问一位领导：“你在北京吗？”"
    tokens = "我 问 一位 领导 ： “ 你 在 北京 吗 ？ ”"
    assert tokenizer("jieba", "zh")(sentence) == tokens
    assert detokenizer("jieba", "zh")(tokens) == sentence
    assert tokenizer("jieba", "zh")("Windows 7  很好") == "Windows 7 很 好"
    assert detokenizer("jieba", "zh")("Windows 7 很 好") == "Windows 7很好"


@pytest.fixture
def model(tmp_path):
    text = "We like us .\n<p>\nBut the US and the dog like Ann .\n\nThe the : Cat\n"
    (tmp_path / "train").write_text(text + "He saw us .\n")
    train_truecaser(tmp_path / "train", tmp_path / "model")
    return tmp_path / "model"


def test_truecaser_equals_moses(model):
    case = truecaser(model)
    assert case("The dog saw the US .") == "the dog saw the US ."  # known forms inside of a sentence are kept
    assert case("US citizens saw Us .") == "us citizens saw us ."  # not the first word, and not unknown forms
    assert case('" The Cat : But') == '" the Cat : But'  # seen only at the start of sentences


def test_truecaser_ignores_first_words_of_sentences(model):
    words = {line.split()[0] for line in model.read_text().splitlines()}
    assert words == {"like", "us", "the", "and", "dog", "Ann", "saw"}


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_moses_escaped_equals_fairseq(language):
    from fairseq.data.encoders.moses_tokenizer import MosesTokenizer, MosesTokenizerConfig

    theirs = MosesTokenizer(MosesTokenizerConfig(source_lang=language, target_lang=language))
    for text in ('A well-known "word" & it\'s [here] <there> | now.', "C'est-à-dire: l'été, n'est-ce pas?"):
        tokens = tokenizer("moses-escaped", language)(text)
        assert tokens == theirs.encode(text) and ("&apos;" in tokens or "&quot;" in tokens) and "@-@" in tokens
        assert detokenizer("moses-escaped", language)(tokens) == theirs.decode(tokens)

"""Subwords back to text, of pieces that are bytes above all: as SentencePiece itself does it."""

import pytest
import torch
from fairseq.data import Dictionary

from docnmt_fairseq.corpus.dictionaries import dictionary_from_model
from docnmt_fairseq.corpus.joining import characters_of, join_subwords
from docnmt_fairseq.corpus.subwords import SubwordOptions, load_subword_model, subword_encoder, train_subword_model
from docnmt_fairseq.tasks.dictionaries import LanguageDictionary

STRANGE = [
    "Maša Ðuković saw 漢字 👍🏽.",
    "🎉 the cat",
    "the cat 🎉",
    "a literal <0x41> and <0xF0> stay <0x>",
    "é",
    "the cat sat on the mat",
]


@pytest.fixture(params=["unigram", "bpe"])
def model(request, tmp_path):
    text = tmp_path / "train.en"
    text.write_text("\n".join(["the cat sat on the mat", "a dog saw the other cat <x0>41", ""] * 4) + "\n")
    options = SubwordOptions(request.param, vocab_size=284, character_coverage=1.0, byte_fallback=True)
    train_subword_model([text], tmp_path / "model", options)
    return tmp_path / "model"


def test_all_text_survives_where_characters_fall_back_to_bytes(model):
    processor = load_subword_model(model)
    for sentence, tokens in zip(STRANGE, subword_encoder(model)(STRANGE)):
        assert join_subwords(tokens, "sentencepiece") == processor.decode(tokens.split()) == sentence
    assert any("<0xF0>" in tokens.split() for tokens in subword_encoder(model)(STRANGE))


def test_pieces_that_are_bytes_have_numbers(model, tmp_path):
    dictionary_from_model(model, tmp_path / "dict.txt")
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    numbers = dictionary.encode_line(subword_encoder(model)(STRANGE)[0], add_if_not_exist=False)
    assert dictionary.unk() not in numbers


def test_what_fairseq_prints_holds_characters(model, tmp_path):
    dictionary_from_model(model, tmp_path / "dict.en.txt")
    dictionary = LanguageDictionary.of_file(tmp_path / "dict.en.txt")
    tokens = subword_encoder(model)(STRANGE)
    rows = [dictionary.encode_line(line, add_if_not_exist=False) for line in tokens]
    assert [dictionary.string(row, "sentencepiece") for row in rows] == STRANGE
    assert [dictionary.string(row) for row in rows] == tokens  # as tokens where nobody asks for text
    assert dictionary.string(torch.stack([rows[0], rows[0]]), "sentencepiece") == f"{STRANGE[0]}\n{STRANGE[0]}"


@pytest.mark.parametrize(
    "tokens, text",
    [
        ("▁a <0xF0> <0x9F> ▁b", "a\ufffd b"),  # the beginning of a character
        ("▁a <0x80> b", "a\ufffdb"),
        ("<0xC5> ▁ <0xA1>", "\ufffd \ufffd"),  # bytes apart are no character
        ("▁a <0x0A> <0x00> b <0x20>", "a  b"),  # a line stays one line
        ("▁a <0xC5> <0xA1> <0xC4> <0x87>", "ašć"),
        ("▁<0x41>", "<0x41>"),
        ("", ""),
    ],
)
def test_bytes_that_a_model_makes_up(tokens, text):
    assert join_subwords(tokens, "sentencepiece") == text


def test_other_subwords_are_joined_as_fairseq_joins_them():
    assert join_subwords("the c@@ at <0x41>", "@@ ") == "the cat <0x41>"
    assert join_subwords("the <0x41>", None) == "the <0x41>"
    with pytest.raises(NotImplementedError, match="nosuch"):
        join_subwords("the", "nosuch")


def test_the_last_byte_shows_the_character():
    tokens = ["▁a", "<0xC5>", "<0xA1>", "<0x41>", "b", "<0xF0>"]
    assert characters_of(tokens) == ["▁a", "", "š", "A", "b", "\ufffd"]

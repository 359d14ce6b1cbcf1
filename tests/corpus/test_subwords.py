"""Subword models: SentencePiece and BPE codes, dictionaries, joining of subwords."""

import pytest
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE

from docnmt_fairseq.corpus.data_bin import dictionary_from_model, dictionary_from_text
from docnmt_fairseq.corpus.subwords import (
    SubwordOptions,
    bpe_encoder,
    join_subwords,
    load_subword_model,
    subword_encoder,
    train_subword_model,
)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.tasks.dictionaries import LanguageDictionary
from tests.support.documents import write_lines

TEXT = ["the cat sat on the mat", "<p>", "a dog saw the other cat", "", "the dog sat on a log", ""] * 4


@pytest.fixture(params=["unigram", "bpe"])
def options(request):
    return SubwordOptions(request.param, vocab_size=26, character_coverage=1.0)


@pytest.fixture
def text(tmp_path):
    write_lines(tmp_path / "train.en", TEXT)
    return tmp_path / "train.en"


def test_training_is_deterministic_and_ignores_boundaries(tmp_path, text, options):
    write_lines(tmp_path / "other.en", [line for line in TEXT if line != "<p>"])
    for name, path in (("one", text), ("two", text), ("three", tmp_path / "other.en")):
        train_subword_model([path], tmp_path / name, options)
    assert len({(tmp_path / name).read_bytes() for name in ("one", "two", "three")}) == 1
    encoded = subword_encoder(tmp_path / "one", workers=2)(TEXT)
    assert [line.replace(" ", "").replace("▁", " ").strip() for line in encoded] == TEXT


def test_bad_vocabulary_size(tmp_path, text, options):
    for size, remedy in ((10**5, r"set it to a value <= \d+"), (5, "Increase vocab_size")):
        with pytest.raises(InputError, match=remedy):
            train_subword_model([text], tmp_path / "model", SubwordOptions(options.kind, vocab_size=size))
    assert not (tmp_path / "model").exists()


def test_dictionary_from_model(tmp_path, text, options):
    train_subword_model([text], tmp_path / "model", options)
    dictionary_from_model(tmp_path / "model", tmp_path / "dict")
    dictionary, processor = Dictionary.load(str(tmp_path / "dict")), load_subword_model(tmp_path / "model")
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    assert dictionary.symbols[4:] == [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]
    assert "<p>" in dictionary and len(dictionary) == 26 + 1  # four special symbols instead of three


def test_dictionary_from_a_foreign_model(tmp_path, text):
    import sentencepiece

    settings = {"vocab_size": 26, "pad_id": 3, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(tmp_path / "m"), **settings)
    dictionary_from_model(tmp_path / "m.model", tmp_path / "dict")
    symbols = [line.split()[0] for line in (tmp_path / "dict").read_text().splitlines()]
    assert symbols[-1] == "<p>" and len(symbols) == 26 - 4 + 1 and "<pad>" not in symbols


def test_dictionary_from_text(tmp_path, text):
    write_lines(tmp_path / "train.de", ["die Katze", ""])
    dictionary_from_text([text, tmp_path / "train.de"], tmp_path / "dict")
    counts = dict(line.split() for line in (tmp_path / "dict").read_text().splitlines())
    assert len(counts) == 12 + 1 and counts["the"] == "16" and counts["<p>"] == "4"
    dictionary_from_text([tmp_path / "train.de"], tmp_path / "dict", min_count=2)
    assert (tmp_path / "dict").read_text() == "<p> 1\n"


# --- BPE codes ---

LINES = ["lower lowest", "<p>", "newer newest", "<p>", "wider widest", "<p>", "low wide ß", "", "lower newer", ""] * 3


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Merges that subword-nmt learnt, and the library's own encoder."""
    folder = tmp_path_factory.mktemp("codes")
    write_lines(folder / "train", LINES)
    train_subword_model([folder / "train"], folder / "codes", SubwordOptions("subword-nmt", vocab_size=20))
    with open(folder / "codes", encoding="utf-8") as stream:
        return folder / "codes", BPE(stream)


@given(st.lists(st.text("lowernstidaböß", min_size=1, max_size=9), min_size=1, max_size=5))
def test_bpe_equals_subword_nmt(codes, words):
    path, library = codes
    (pieces,) = subword_encoder(path, kind="subword-nmt")([" ".join(words)])
    assert pieces == library.process_line(" ".join(words))
    assert join_subwords(pieces, "@@ ").split() == words


@pytest.mark.parametrize(
    ("content", "text", "pieces"),
    [
        ("a b 7\nb c</w> 5\na b 3\n", "abc", "ab@@ c"),  # fastBPE writes counts; the first rank of a merge counts
        ("#version: 0.2\n\u00a0 b</w>\n1 \u00a0\na b</w>\n", "ab cab", "ab c@@ ab"),  # symbols may be white space
    ],
)
def test_formats_of_bpe_codes(tmp_path, content, text, pieces):
    (tmp_path / "codes").write_text(content, encoding="utf-8")
    assert bpe_encoder(tmp_path / "codes")([text]) == [pieces]


def test_bpe_codes_of_another_version_are_refused(tmp_path):
    (tmp_path / "codes").write_text("#version: 0.1\na b</w>\n")
    with pytest.raises(InputError):
        bpe_encoder(tmp_path / "codes")


# --- Joining ---

CHARACTERS = ["Maša Ðuković saw 漢字 👍🏽.", "🎉 the cat", "a literal <0x41> and <0xF0> stay <0x>", "é", "the cat 🎉"]


@pytest.fixture(params=["unigram", "bpe"])
def byte_model(request, tmp_path):
    write_lines(tmp_path / "train.en", ["the cat sat on the mat", "a dog saw the other cat <x0>41", ""] * 4)
    options = SubwordOptions(request.param, vocab_size=284, character_coverage=1.0, byte_fallback=True)
    train_subword_model([tmp_path / "train.en"], tmp_path / "model", options)
    return tmp_path / "model"


def test_byte_fallback_round_trip(byte_model, tmp_path):
    processor, encoded = load_subword_model(byte_model), subword_encoder(byte_model)(CHARACTERS)
    for sentence, tokens in zip(CHARACTERS, encoded):
        assert join_subwords(tokens, "sentencepiece") == processor.decode(tokens.split()) == sentence
    assert any("<0xF0>" in tokens.split() for tokens in encoded)
    dictionary_from_model(byte_model, tmp_path / "dict.en.txt")
    dictionary = LanguageDictionary.of_file(tmp_path / "dict.en.txt")
    rows = [dictionary.encode_line(line, add_if_not_exist=False) for line in encoded]
    assert not any(dictionary.unk() in row for row in rows)
    assert [dictionary.string(row, "sentencepiece") for row in rows] == CHARACTERS
    assert [dictionary.string(row) for row in rows] == encoded


@pytest.mark.parametrize(
    ("tokens", "symbol", "text"),
    [
        ("▁a <0xF0> <0x9F> ▁b", "sentencepiece", "a\ufffd b"),
        ("<0xC5> ▁ <0xA1>", "sentencepiece", "\ufffd \ufffd"),
        ("▁a <0x0A> <0x00> b <0x20>", "sentencepiece", "a  b"),  # a line stays one line
        ("▁a <0xC5> <0xA1> <0xC4> <0x87>", "sentencepiece", "ašć"),
        ("the c@@ at <0x41>", "@@ ", "the cat <0x41>"),
        ("the <0x41>", None, "the <0x41>"),
    ],
)
def test_join_subwords(tokens, symbol, text):
    assert join_subwords(tokens, symbol) == text

"""Text as ``docnmt prepare`` made it: the same tokens for a sentence by itself, and back."""

import shutil
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.prepared import data_bin as data_bin_of
from docnmt_fairseq.corpus.prepared import languages_of, prepared_folder
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from tests.support.documents import write_lines

TEXT = [
    "The cat sleeps, today.",
    "It has eaten!",
    "<p>",
    "Mary likes   the cat.",
    "",
    "Does Mary sleep?",
    "No.",
    "",
] * 3
PLAIN = {"tokenizer": "none", "truecase": False, "joint": True}
MOSES = {"tokenizer": "moses", "truecase": True, "joint": False}


@pytest.fixture(scope="module", params=[PLAIN, MOSES], ids=["joint", "moses"])
def prepared(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    write_lines(folder / "train.en", TEXT)
    write_lines(folder / "train.de", [line if line in ("", "<p>") else f"Ja, {line}" for line in TEXT])
    options = {"subwords": "bpe", "vocab_size": 40, "character_coverage": 1.0, **request.param}
    prepare(PrepareConfig("en", "de", folder / "out", train=str(folder / "train"), **options))
    return folder / "out"


def lines_of(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("side", [0, 1])
def test_sentences_become_what_they_became(prepared, side):
    language = ("en", "de")[side]
    text, pieces = (lines_of(prepared / stage / f"train.{language}") for stage in ("text", "subword"))
    kept = [number for number, line in enumerate(text) if line not in ("", "<p>")]
    codec = TextCodec(prepared)
    assert codec.encode(side, [text[number] for number in kept]) == [pieces[number] for number in kept]
    dictionary = Dictionary.load(str(prepared / "data-bin" / f"dict.{language}.txt"))
    tokens = token_ids(codec.encode_lines(side, text), dictionary)
    assert [dictionary.string(one) for one in tokens] == pieces
    assert [len(one) for line, one in zip(text, tokens) if line in ("", "<p>")] == [
        1 if line == "" else 2 for line in text if line in ("", "<p>")
    ]


@pytest.mark.parametrize("options", [PLAIN, MOSES], ids=["joint", "moses"])
def test_characters_without_a_piece_survive(tmp_path, options):
    write_lines(tmp_path / "train.en", TEXT)
    write_lines(tmp_path / "train.de", TEXT)
    options = {"subwords": "bpe", "vocab_size": 290, "character_coverage": 1.0, "byte_fallback": True, **options}
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(tmp_path / "train"), **options))
    again = {"test": [str(tmp_path / "train")], "reuse": tmp_path / "out"}
    prepare(PrepareConfig("en", "de", tmp_path / "again", **again))  # --reuse takes it, too
    for folder in (tmp_path / "out", tmp_path / "again"):
        codec = TextCodec(folder)
        assert codec.options["byte_fallback"] is True
        (tokens,) = codec.encode(1, ["Mary likes Ðuković 👍."])
        assert "<0xF0>" in tokens.split()
        assert codec.decode(tokens) == "Mary likes Ðuković 👍."


def test_translations_become_plain_text(prepared):
    text, pieces = (lines_of(prepared / stage / "train.de") for stage in ("text", "subword"))
    codec = TextCodec(prepared)
    assert [codec.decode(one) for one in pieces[:2]] == text[:2] == ["Ja, The cat sleeps, today.", "Ja, It has eaten!"]


def test_tokens_stay_as_they_are(prepared, data_bin):
    for codec in (TextCodec(prepared, tokenized=True), TextCodec(data_bin)):
        assert codec.encode(0, ["a  b,", "c"]) == ["a b,", "c"] and codec.decode("a b,") == "a b,"


def test_the_folder_or_its_data_bin_is_found(prepared, tmp_path, data_bin):
    assert data_bin_of(prepared) == data_bin_of(prepared / "data-bin") == prepared / "data-bin"
    assert prepared_folder(prepared) == prepared_folder(prepared / "data-bin") == prepared
    assert prepared_folder(data_bin) == data_bin_of(data_bin) == data_bin
    with pytest.raises(InputError, match="holds no dict"):
        data_bin_of(tmp_path)


@pytest.mark.parametrize(("inside", "given"), [("data-bin", "."), ("text", "..")])
def test_the_folder_around_is_found_from_within(prepared, monkeypatch, inside, given):
    monkeypatch.chdir(prepared / inside)
    assert prepared_folder(Path(given)).samefile(prepared)


def test_languages_are_those_of_the_text(prepared, tmp_path):
    assert languages_of(prepared / "data-bin") == ("en", "de")
    for name in ("dict.a.txt", "train.feat-v20.npy", "train.b-a.c.idx"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"--source-lang and --target-lang: not given, and .* holds no SPLIT"):
        languages_of(tmp_path)
    with pytest.raises(InputError, match=r"holds no SPLIT.* which they are; give .*data-bin"):
        languages_of(prepared)
    for place in (tmp_path / "none", tmp_path / "dict.a.txt"):
        with pytest.raises(InputError, match=f"{place}: no such folder; give the data-bin"):
            languages_of(place)
    (tmp_path / "valid.b-a.a.idx").touch()
    assert languages_of(tmp_path) == ("b", "a")


def test_only_a_finished_output_has_the_steps_of_its_text(prepared, data_bin):
    assert TextCodec.of_output(prepared).languages == ("en", "de")
    with pytest.raises(InputError, match=r"--data .*: not a finished output of docnmt prepare"):
        TextCodec.of_output(data_bin)


def test_what_is_missing_is_said_before_any_work(prepared, tmp_path):
    folder = shutil.copytree(prepared, tmp_path / "out")
    TextCodec.of_output(folder).load()
    for model in (folder / "models").glob("*.model"):
        model.unlink()
    with pytest.raises(InputError, match="not a SentencePiece model"):
        TextCodec.of_output(folder).load()

"""Text as ``docnmt prepare`` made it: the same tokens for a sentence by itself, and back."""

import pickle
import shutil
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation import loading
from docnmt_fairseq.evaluation.loading import TextCodec, load, to_tokens
from tests import toy
from tests.conftest import write_lines

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
    tokens = to_tokens(text, codec, side, dictionary)
    assert [dictionary.string(one) for one in tokens] == pieces
    assert [len(one) for line, one in zip(text, tokens) if line in ("", "<p>")] == [
        1 if line == "" else 2 for line in text if line in ("", "<p>")
    ]


def test_translations_become_plain_text(prepared):
    text, pieces = (lines_of(prepared / stage / "train.de") for stage in ("text", "subword"))
    codec = TextCodec(prepared)
    assert [codec.decode(one) for one in pieces[:2]] == text[:2] == ["Ja, The cat sleeps, today.", "Ja, It has eaten!"]


def test_tokens_stay_as_they_are(prepared, data_bin):
    for codec in (TextCodec(prepared, tokenized=True), TextCodec(data_bin)):
        assert codec.encode(0, ["a  b,", "c"]) == ["a b,", "c"] and codec.decode("a b,") == "a b,"


def test_the_folder_or_its_data_bin_is_found(prepared, tmp_path):
    assert loading.data_bin(prepared) == loading.data_bin(prepared / "data-bin") == prepared / "data-bin"
    with pytest.raises(InputError, match="holds no dict"):
        loading.data_bin(tmp_path)


def test_a_model_is_loaded_with_the_data_that_was_given(data_bin, tmp_path):
    trained = toy.train(data_bin, tmp_path / "model", "--max-update", "1")
    moved = shutil.copytree(data_bin, tmp_path / "moved")
    task = load(str(trained), moved, options={"context": "none"}).task
    assert (task.cfg.data, str(task.cfg.context)) == (str(moved), "none")
    (moved / "dict.src.txt").unlink()
    with pytest.raises(InputError, match=r"cannot be loaded with --data .*moved"):
        load(str(trained), moved)


def test_what_is_no_checkpoint_is_named(prepared, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"nothing")
    for name in ("none.pt", "model.pt"):
        with pytest.raises(InputError, match=f"--path .*{name}"):
            load(str(tmp_path / name), prepared)


@pytest.mark.parametrize("content", [b"words 1", pickle.dumps(Path("x"))], ids=["text", "an object"])
def test_nobody_is_advised_to_load_what_may_execute_anything(prepared, tmp_path, content):
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"--path .*model\.pt: not a checkpoint") as error:
        load(str(tmp_path / "model.pt"), prepared)
    assert not any(advice in str(error.value) for advice in ("weights_only", "can still be loaded", "two options"))


def test_the_member_of_an_ensemble_that_is_no_checkpoint_is_named(prepared, tmp_path):
    (tmp_path / "other.pt").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"--path \S*other.pt: not a checkpoint"):
        load_ensemble([tmp_path / "first.pt", tmp_path / "other.pt"], prepared / "data-bin", first={"model": {}})

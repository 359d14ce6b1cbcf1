"""Text processing: the same tokens in files and in memory, the way back, several processes."""

import os
import signal
from pathlib import Path

import pytest
from fairseq.data import Dictionary

from docnmt_fairseq.corpus import pipeline
from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.pipeline import TextCodec, parallel, process_file, token_ids
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.prepared import data_bin as data_bin_of
from docnmt_fairseq.corpus.prepared import languages_of, prepared_folder
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
MERGES = {"tokenizer": "moses-escaped", "truecase": False, "joint": False, "subwords": "subword-nmt"}


@pytest.fixture(scope="module", params=[PLAIN, MOSES, MERGES], ids=["joint", "moses", "merges"])
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
def test_codec_equals_prepare(prepared, side):
    language = ("en", "de")[side]
    text, pieces = (lines_of(prepared / stage / f"train.{language}") for stage in ("text", "subword"))
    codec = TextCodec(prepared)
    assert codec.encode_lines(side, text) == pieces
    dictionary = Dictionary.load(str(prepared / "data-bin" / f"dict.{language}.txt"))
    tokens = token_ids(codec.encode_lines(side, text), dictionary)
    assert [dictionary.string(one) for one in tokens] == pieces
    if side == 1:
        assert [codec.decode(one) for one in pieces[:2]] == text[:2]


def test_byte_fallback_keeps_all_characters(tmp_path):
    for side in ("en", "de"):
        write_lines(tmp_path / f"train.{side}", TEXT)
    options = {"subwords": "bpe", "vocab_size": 290, "character_coverage": 1.0, "byte_fallback": True, **MOSES}
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(tmp_path / "train"), **options))
    again = {"test": [str(tmp_path / "train")], "reuse": tmp_path / "out"}
    prepare(PrepareConfig("en", "de", tmp_path / "again", **again))
    for folder in (tmp_path / "out", tmp_path / "again"):
        codec = TextCodec(folder)
        (tokens,) = codec.encode(1, ["Mary likes Ðuković 👍."])
        assert "<0xF0>" in tokens.split() and codec.decode(tokens) == "Mary likes Ðuković 👍."


def test_prepared_folder_and_languages(prepared, tmp_path, data_bin, monkeypatch):
    assert data_bin_of(prepared) == data_bin_of(prepared / "data-bin") == prepared / "data-bin"
    assert prepared_folder(prepared) == prepared_folder(prepared / "data-bin") == prepared
    assert prepared_folder(data_bin) == data_bin_of(data_bin) == data_bin
    assert languages_of(prepared / "data-bin") == ("en", "de")
    with pytest.raises(InputError):
        languages_of(tmp_path)
    for name in ("dict.a.txt", "train.feat-v20.npy", "train.b-a.c.idx", "valid.b-a.a.idx"):
        (tmp_path / name).touch()
    assert languages_of(tmp_path) == ("b", "a")
    for source, target in [
        ("pt-BR", "zh-CN"),
        ("pt-BR", "pt"),
        ("pt", "pt-BR"),
        ("zh-Hans-CN", "en"),
        ("en", "zh-Hans-CN"),
    ]:
        folder = tmp_path / f"{source} {target}"
        folder.mkdir()
        for language in (source, target):
            (folder / f"dict.{language}.txt").touch()
            (folder / f"train.{source}-{target}.{language}.idx").touch()
        assert languages_of(folder) == (source, target)
    monkeypatch.chdir(prepared / "data-bin")
    assert prepared_folder(Path(".")).samefile(prepared)


# --- Processes ---


def upper():
    return str.upper


@pytest.mark.parametrize("workers", [1, 2])
def test_process_file_keeps_boundaries_and_order(tmp_path, monkeypatch, workers):
    monkeypatch.setattr(pipeline, "BATCH", 3)
    monkeypatch.setattr(pipeline, "CHUNK", 2)
    lines = ["a b", "<p>", "c", "", "", "d"] + [f"x{i}" for i in range(20)] + [""]
    write_lines(tmp_path / "in", lines)
    found = [line for batch in process_file(tmp_path / "in", parallel(upper, workers)) for line in batch]
    assert found == [line if line == "<p>" else line.upper() for line in lines]


def killed():
    return lambda sentence: os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_reported(tmp_path):
    write_lines(tmp_path / "in", ["a", ""])
    with pytest.raises(InputError, match="a process was killed"):
        list(process_file(tmp_path / "in", parallel(killed, 2)))


def test_sentence_that_becomes_empty_is_an_error(tmp_path):
    write_lines(tmp_path / "in", ["a", "", "b"])
    with pytest.raises(InputError, match=r"in:3: step"):
        list(process_file(tmp_path / "in", lambda lines: [line.strip("b") for line in lines], "step"))

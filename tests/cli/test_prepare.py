"""``docnmt prepare``: options, help, printed training command, errors."""

import shlex
import sys
from pathlib import Path

import pytest
from fairseq_cli import train

import docnmt_fairseq
from docnmt_fairseq import cli
from docnmt_fairseq.cli import prepare as command
from docnmt_fairseq.corpus.config import PrepareConfig
from tests.support.documents import write_lines
from tests.support.reading import write

REQUIRED = ["--source-lang", "en", "--target-lang", "de", "--output", "out"]


def config(*arguments):
    return command.config_from(cli.build_parser().parse_args(["prepare", *REQUIRED, *arguments]))


def test_defaults_are_those_of_the_dataclass():
    assert config("--train", "t", "--workers", "1") == PrepareConfig("en", "de", Path("out"), train=["t"])
    assert config("--train", "t").workers >= 1
    assert config("--test", "t", "--subword-model", "m").joint
    assert not config("--test", "t", "--subword-model", "m", "n").joint


def test_options_reach_the_config():
    found = config(
        "--train", "a", "b", "--valid", "v", "--test", "t", "--test", "u.xml", "--test-format", "wmt-xml", "--separate",
        "--truecase", "--tokenizer", "moses", "--subwords", "bpe", "--vocab-size", "9", "--reference", "B",
        "--workers", "2", "--source-tokenizer", "none", "--columns", "en", "de", "id", "--header", "--extra", "mt",
        "--character-coverage", "0.99", "--shards", "2", "--sample-documents", "7", "--edits-of", "mt",
    )  # fmt: skip
    assert found == PrepareConfig(
        "en", "de", Path("out"), train=["a", "b"], valid=[["v"]], test=[["t"], ["u.xml"]], test_format="wmt-xml",
        joint=False, truecase=True, tokenizer="moses", subwords="bpe", vocab_size=9, workers=2, extra=["mt"],
        character_coverage=0.99, shards=2, sample_documents=7, edits_of="mt", source_tokenizer="none",
        reader_options={"reference": "B", "columns": ["en", "de", "id"], "header": True},
    )  # fmt: skip


def test_formats_of_splits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.tsv", "v.en", "v.de", "t.en", "t.de", "u.xml"):
        Path(name).touch()
    files = ["--train", "x.tsv", "--valid", "v", "--valid", "t", "--test", "u.xml"]
    found = config(*files, "--train-format", "tsv", "--valid-format", "delimited", "--test-format", "wmt-xml")
    assert [(split.name, split.format) for split in found.splits()] == [
        ("train", "tsv"), ("valid", "delimited"), ("valid1", "delimited"), ("test", "wmt-xml"),
    ]  # fmt: skip


def test_help_lists_formats(capsys):
    with pytest.raises(SystemExit):
        cli.main(["prepare", "--help"])
    text = capsys.readouterr().out
    assert "\n  wmt-xml\n    WMT XML with" in text and "\n    takes one file per side\n" in text


@pytest.mark.slow
def test_printed_training_command_trains(tmp_path, capsys, monkeypatch):
    for split in ("train", "valid"):
        for side in ("en", "de"):
            write_lines(tmp_path / f"{split}.{side}", ["a b", "c", ""] * 3)
    files = ["--train", str(tmp_path / "train"), "--valid", str(tmp_path / "valid")]
    options = ["-s", "en", "-t", "de", "--subwords", "none", "--workers", "1", "--output", str(tmp_path / "out")]
    assert cli.main(["prepare", *options, *files]) == 0
    assert list(tmp_path.glob("out/data-bin/train.*.index.npy"))
    counts, *_, data, line = capsys.readouterr().out.splitlines()
    assert counts == "train: 3 documents, 6 sentences, 9 en + 9 de words" and data == str(tmp_path / "out" / "data-bin")
    cheap = ["--max-update", "1", "--encoder-layers", "1", "--decoder-layers", "1", "--cpu", "--no-epoch-checkpoints"]
    docnmt_fairseq.register()  # this process has imported the package, so that --user-dir does not register it again
    monkeypatch.setattr(sys, "argv", [*shlex.split(line), *cheap])
    train.cli_main()
    assert (tmp_path / "out" / "model" / "checkpoint_last.pt").exists()


def test_bad_input_is_reported_in_one_line(tmp_path, capsys):
    write(tmp_path, "x.en", "a\n")
    write(tmp_path, "x.de", "a\nb\n")
    out = str(tmp_path / "out")
    assert cli.main(["prepare", "-s", "en", "-t", "de", "--output", out, "--train", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"docnmt prepare: error: {tmp_path / 'x.de'}:2: ")

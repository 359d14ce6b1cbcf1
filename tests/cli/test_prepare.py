import logging
import shlex
import sys
from pathlib import Path

import pytest
from fairseq_cli import train

import docnmt_fairseq
from docnmt_fairseq import cli
from docnmt_fairseq.cli import prepare as command
from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import PrepareConfig, config_of
from docnmt_fairseq.errors import InputError
from tests.support.documents import write_lines
from tests.support.reading import write

REQUIRED = ["--source-lang", "en", "--target-lang", "de", "--output", "out"]


def config(*arguments):
    return command.config_from(cli.build_parser().parse_args(["prepare", *REQUIRED, *arguments]))


def test_defaults_are_those_of_the_config():
    assert config("--train", "t", "--workers", "1") == PrepareConfig("en", "de", "out", train=["t"])
    assert config("--train", "t").workers >= 1


def test_options_reach_the_config():
    found = config(
        "--train", "a", "b", "--valid", "v", "--test", "t", "--test", "u.xml", "--test-format", "wmt-xml", "--separate",
        "--truecase", "--tokenizer", "moses", "--subwords", "bpe", "--vocab-size", "9", "--reference", "B",
        "--workers", "2", "--source-tokenizer", "none", "--columns", "en", "de", "id", "--header",
    )  # fmt: skip
    assert found == PrepareConfig(
        "en", "de", "out", train=["a", "b"], valid=[["v"]], test=[["t"], ["u.xml"]], test_format="wmt-xml", joint=False,
        truecase=True, tokenizer="moses", subwords="bpe", vocab_size=9, workers=2,
        source_tokenizer="none", reader_options={"reference": "B", "columns": ["en", "de", "id"], "header": True},
    )  # fmt: skip


def test_splits_have_formats_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.tsv", "v.en", "v.de", "t.en", "t.de", "u.xml"):
        Path(name).touch()
    files = ["--train", "x.tsv", "--valid", "v", "--valid", "t", "--test", "u.xml"]
    found = config(*files, "--train-format", "tsv", "--valid-format", "delimited", "--test-format", "wmt-xml")
    assert [(split.name, split.format) for split in found.splits()] == [
        ("train", "tsv"), ("valid", "delimited"), ("valid1", "delimited"), ("test", "wmt-xml"),
    ]  # fmt: skip
    found = config("--train", "v", "--valid", "t", "--test", "u.xml", "--test-format", "wmt-xml")
    assert [split.format for split in found.splits()] == ["delimited", "delimited", "wmt-xml"]


def test_a_document_a_line_is_asked_for_of_delimited_text(tmp_path):
    paths = [write(tmp_path, f"x.{side}", "a\nb\n") for side in ("en", "de")]
    for option, documents in (([], 1), (["--one-document-a-line"], 2)):
        reading = config("--train", str(tmp_path / "x"), *option).reading
        assert len(list(readers.make_reader("delimited", reading).read(paths))) == documents


def test_number_of_models_says_whether_they_are_joint():
    assert config("--test", "t", "--subword-model", "m").joint
    assert not config("--test", "t", "--subword-model", "m", "n").joint


def test_reuse_settles_the_options_of_the_models():
    with pytest.raises(InputError, match="leave out --vocab-size, --separate"):
        config("--test", "t", "--reuse", "r", "--vocab-size", "9", "--separate")


def test_help_lists_formats(capsys):
    with pytest.raises(SystemExit):
        cli.main(["prepare", "--help"])
    text = capsys.readouterr().out
    assert "\n  wmt-xml\n    WMT XML with" in text and "\n    takes one file a side\n" in text


class Made:
    paths = [Path("/anywhere/out/data-bin")]

    def make(self, number):
        pass


def test_run_prints_data_bin_and_training_command(monkeypatch, capsys):
    counts = {"documents": 1, "sentences": 2, "words": {"en": 3, "de": 4}}
    monkeypatch.setattr(command, "fit", lambda config: (Made(), {}))
    monkeypatch.setattr("docnmt_fairseq.data.kept_index.keep_indexes", lambda *_: None)
    monkeypatch.setattr(command, "finish", lambda bins, inputs: {"counts": {"train": counts}})
    assert cli.main(["prepare", *REQUIRED, "--train", "t"]) == 0
    train, data_bin, line = capsys.readouterr().out.splitlines()
    assert (train, data_bin) == ("train: 1 documents, 2 sentences, 3 en + 4 de words", "out/data-bin")
    assert line.startswith("fairseq-train out/data-bin --user-dir ") and "--task document_translation" in line
    assert line.endswith("--save-dir out/model --disable-validation")  # there is no --valid


def test_the_training_command_that_is_printed_trains(tmp_path, capsys, monkeypatch):
    for split in ("train", "valid"):
        for side in ("en", "de"):
            write_lines(tmp_path / f"{split}.{side}", ["a b", "c", ""] * 3)
    files = ["--train", str(tmp_path / "train"), "--valid", str(tmp_path / "valid")]
    options = ["-s", "en", "-t", "de", "--subwords", "none", "--workers", "1", "--output", str(tmp_path / "out")]
    assert cli.main(["prepare", *options, *files]) == 0
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    cheap = ["--max-update", "1", "--encoder-layers", "1", "--decoder-layers", "1", "--cpu", "--no-epoch-checkpoints"]
    docnmt_fairseq.register()  # this process has imported the package, which --user-dir does not do once more
    monkeypatch.setattr(sys, "argv", [*command, *cheap])
    train.cli_main()
    assert (tmp_path / "out" / "model" / "checkpoint_last.pt").exists()


@pytest.mark.parametrize("subwords", [["--subwords", "none"], ["--subword-model", "x.model"]])
def test_options_of_subwords_that_nobody_trains_are_refused(capsys, subwords):
    assert cli.main(["prepare", *REQUIRED, "--train", "t", "--vocab-size", "8", *subwords]) == 2
    assert f"--vocab-size: of subwords that are trained; {subwords[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--subwords", "subword-nmt", "--normalization", "nfkc"], "--normalization: of SentencePiece, not of"),
        (["--subwords", "subword-nmt", "--character-coverage", "1"], "--character-coverage: of SentencePiece, not of"),
        (["--min-count", "2", "--max-words", "9"], "--min-count, --max-words: of dictionaries of words and merges"),
        (["--subwords", "bpe", "--max-words", "9"], "--max-words: of dictionaries of words and merges, not of --subwo"),
    ],
)
@pytest.mark.sampled(1)
def test_options_of_other_subwords_are_refused(capsys, options, message):
    assert cli.main(["prepare", *REQUIRED, "--train", "t", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("subwords", ["none", "subword-nmt"])
def test_words_and_merges_have_sizes_of_dictionaries(subwords):
    given = ["prepare", *REQUIRED, "--train", "t", "--min-count", "2", "--max-words", "9", "--subwords", subwords]
    config = command.config_from(cli.build_parser().parse_args(given))
    assert (config.min_count, config.max_words) == (2, 9)


def test_loggers_tell_afterwards_what_they_told_before(monkeypatch):
    levels = []
    loggers = [logging.getLogger(name) for name in ("fairseq", "fairseq.tasks.text_to_speech")]
    before = [logger.level for logger in loggers]
    monkeypatch.setattr(command, "fit", lambda _: levels.extend(one.level for one in loggers) or (Made(), {}))
    monkeypatch.setattr("docnmt_fairseq.data.kept_index.keep_indexes", lambda *_: None)
    monkeypatch.setattr(command, "finish", lambda *_: {"counts": {}})
    assert cli.main(["prepare", *REQUIRED, "--train", "t"]) == 0
    assert levels == [logging.WARNING] * 2 and [logger.level for logger in loggers] == before
    monkeypatch.setattr(command, "fit", lambda _: config_of({"nonsense": 1}))
    assert cli.main(["prepare", *REQUIRED, "--train", "t"]) == 2
    assert [logger.level for logger in loggers] == before


def test_bad_input_is_one_line(tmp_path, capsys):
    (tmp_path / "x.en").write_text("a\n")
    (tmp_path / "x.de").write_text("a\nb\n")
    out = str(tmp_path / "out")
    assert cli.main(["prepare", "-s", "en", "-t", "de", "--output", out, "--train", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"docnmt prepare: error: {tmp_path / 'x.de'}:2: ")

"""``docnmt report`` from a checkpoint to a file."""

import json

import pytest

from docnmt_fairseq.cli import main
from tests.support.documents import write_lines
from tests.support.toy import train


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    options = ("--context-attention", "conditional", "--context-top-t", "2", "--max-update", "2")
    return train(data_bin, tmp_path_factory.mktemp("report") / "my-model", *options)


def run(checkpoint, data_bin, output, *options):
    return main(["report", "--path", str(checkpoint), "--data", str(data_bin), "--output", str(output), *options])


def test_all_sections(checkpoint, data_bin, tmp_path):
    log = '2026 | INFO | train_inner | {"loss": "5", "num_updates": "1"}\n'
    (tmp_path / "train.log").write_text(log)
    scores = {"metric": "BLEU", "level": "sentence", "signature": "s", "systems": {"a": 1.0}}
    (tmp_path / "scores.json").write_text(json.dumps({"scores": [scores]}))
    write_lines(tmp_path / "h.context.src", ["A  <hon>b<hoff> ."])
    write_lines(tmp_path / "h.src", ["<p>a</p>"])
    options = ["--log", tmp_path / "train.log", "--results", tmp_path / "scores.json", "--scat", tmp_path / "h"]
    assert run(checkpoint, data_bin, tmp_path / "r.html", *map(str, options), "--document", "3") == 0
    html = (tmp_path / "r.html").read_text()
    assert "my-model: document 3" in html
    for heading in ("Document", "Scores", "Highlighted context", "Training"):
        assert f"<h2>{heading}</h2>" in html
    assert run(checkpoint, data_bin, tmp_path / "again.html", *map(str, options), "--document", "3") == 0
    assert (tmp_path / "again.html").read_text() == html


def test_text_input(checkpoint, data_bin, tmp_path):
    write_lines(tmp_path / "text.src", ["a b", "c", "", "d e"])
    assert run(checkpoint, data_bin, tmp_path / "r.html", "--input", str(tmp_path / "text.src")) == 0
    assert "1 of text.src" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--document", "0"], "--document 0"),
        (["--split", "none"], "contains no none"),
        (["--log", "missing"], "missing"),
        (["--results", "missing"], "missing"),
    ],
)
def test_bad_input(checkpoint, data_bin, tmp_path, capsys, options, message):
    assert run(checkpoint, data_bin, tmp_path / "r.html", *options) == 2
    error = capsys.readouterr().err
    assert message in error and error.strip().count("\n") == 0
    assert not (tmp_path / "r.html").exists()

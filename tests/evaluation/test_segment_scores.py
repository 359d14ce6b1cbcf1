"""Scores of other programs: means, significance over documents, errors."""

import json

import pytest

from docnmt_fairseq.cli import main

REFERENCE = "a b\nc\n\nd e f\n"


@pytest.fixture
def score(tmp_path, monkeypatch, capsys):
    """Returns a function that scores two systems with more options; returns the JSON report or the error."""
    monkeypatch.chdir(tmp_path)
    for name in ("reference", "one", "two"):
        (tmp_path / name).write_text(REFERENCE, encoding="utf-8")
    (tmp_path / "one.comet").write_text("0.5\n0.25\n\n0.75\n")  # with the boundary, as the text
    (tmp_path / "two.comet").write_text("0.6\n0.9e0\n 0.9\n")

    def run(*options):
        systems = ["--system", "one=one", "--system", "two=two", "--metrics", "bleu", "--format", "json"]
        status = main(["score", "--reference", "reference", *systems, *options])
        found = capsys.readouterr()
        return json.loads(found.out) if status == 0 else found.err

    return run


COMET = ["--segment-scores", "COMET:one=one.comet", "--segment-scores", "COMET:two=two.comet"]


def test_means_and_tests(score):
    *_, comet = score(*COMET, "--test", "documents", "--level", "sentence")["scores"]
    assert comet["metric"] == "COMET" and comet["signature"] == "scores:given"
    assert comet["systems"] == pytest.approx({"one": 0.5, "two": 0.8}) and not comet["lower_is_better"]
    assert comet["tests"]["documents"]["outcomes"]["two"]["difference"] == pytest.approx(0.3)


def test_several_metrics(score):
    errors = [part.replace("COMET", "Metric:X") for part in COMET]
    *_, comet, other = score(*COMET, *errors, "--lower-is-better", "Metric:X")["scores"]
    assert (comet["metric"], other["metric"]) == ("COMET", "Metric:X") and other["lower_is_better"]


def test_missing_scores(score, tmp_path):
    (tmp_path / "short").write_text("1\n2\n")
    assert "short: 2 scores, but the test set has 3 sentences" in score("--segment-scores", "COMET:one=short")
    assert "COMET: no scores of two" in score(*COMET[:2])
    assert "comet: no such metric" in score(*COMET, "--lower-is-better", "comet")

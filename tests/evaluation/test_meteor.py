"""METEOR through a stand-in for the authors' program."""

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.meteor import Meteor, MeteorOptions
from docnmt_fairseq.evaluation.texts import References
from tests.support.meteor import fake_program

TEST_SET = References((), [[["a b c", "d e"]], [["x", "d f"]]], None, [[1, 2]])


def test_statistics_of_segments_are_summed(tmp_path, monkeypatch):
    metric = Meteor(TEST_SET, MeteorOptions(fake_program(tmp_path, monkeypatch), "de"))
    rows = metric.statistics([["a ||| b", "d f"]])
    assert rows == [[2, 5], [2, 4]] and metric.corpus_score(rows) == pytest.approx(100 * 8 / 9)
    assert metric.score([0, 0]) == 0
    signature = metric.signature()
    assert (
        "meteor:meteor-1.5.jar|" in signature and str(tmp_path) not in signature and "meteor_language:de" in signature
    )


def test_failing_program(tmp_path, monkeypatch):
    jar = fake_program(tmp_path, monkeypatch)
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\necho 'no Java' >&2\n")
    with pytest.raises(InputError, match="without an answer: no Java"):
        Meteor(TEST_SET, MeteorOptions(jar)).statistics([["a", "b"]])


def test_command(tmp_path, monkeypatch, capsys):
    for name in ("reference", "system"):
        (tmp_path / name).write_text("a b\nc\n")
    files = ["--reference", str(tmp_path / "reference"), "--system", f"mine={tmp_path / 'system'}"]
    jar = fake_program(tmp_path, monkeypatch)
    assert cli.main(["score", *files, "--metrics", "meteor", "--meteor", jar, "--meteor-language", "de"]) == 0
    assert "100.00" in capsys.readouterr().out

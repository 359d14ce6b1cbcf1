"""The run-book of a GPU: every stage at toy size on a CPU, and what keeps a lent machine's minutes from being lost."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.gpu import __main__ as book
from benchmarks.gpu import pack, real_text, report, stage
from benchmarks.gpu.stage import STAGES, Setting, Stage, run_stage
from benchmarks.lib.machine import ROOT
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import Registry


@pytest.fixture
def made_up(monkeypatch):
    """Registers a stage of three points, the second of which may fail; returns what was called."""
    registry, called = Registry("stage"), []
    monkeypatch.setattr(stage, "STAGES", registry)

    @registry.register("made-up")
    class MadeUp(Stage):
        minutes, fails = 1.0, True

        def points(self, setting):
            for name in ("a", "b", "c"):
                yield name, lambda name=name: self.measure(name)

        def measure(self, name):
            called.append(name)
            if name == "b" and MadeUp.fails:
                raise ValueError("no memory")
            return {"ms": 1.0}

    return MadeUp, called


def test_points_are_measured_once_and_failed_ones_again(made_up, tmp_path):
    kind, called = made_up
    first = run_stage("made-up", Setting(tmp_path, dry=True))
    assert (first.measured, first.failed) == (["a", "c"], ["b"])  # one failure does not stop the others
    kept = json.loads((tmp_path / "made-up.json").read_text())["runs"]
    assert (
        kept["a"] == {"ms": 1.0} and kept["b"]["error"] == "ValueError: no memory" and "measure" in kept["b"]["trace"]
    )
    kind.fails = False
    second = run_stage("made-up", Setting(tmp_path, dry=True))
    assert (second.before, second.measured, second.failed) == (["a", "c"], ["b"], [])
    assert called == ["a", "b", "c", "b"]


def test_no_point_is_begun_that_would_not_end_in_time(made_up, tmp_path):
    kind, called = made_up
    kind.fails = False
    seconds = iter([0, 0, 25, 25, 50, 50])  # the third would end at 75 of 60
    outcome = run_stage("made-up", Setting(tmp_path, dry=True), now=lambda: next(seconds))
    assert (outcome.measured, outcome.left) == (["a", "b"], ["c"])
    assert called == ["a", "b"]
    assert run_stage("made-up", Setting(tmp_path, dry=True)).measured == ["c"]
    kind.goes_on, seconds = True, iter([0, 0, 25, 25, 50, 50, 75])
    assert run_stage("made-up", Setting(tmp_path / "goes on"), now=lambda: next(seconds)).left == []


def test_predictions_stand_beside_what_was_measured(tmp_path):
    runs = {
        "64/flash": {"forward ms": 6.0, "both ms": 20.0},
        "64/triton": {"forward ms": 2.0, "both ms": 4.0},
        "128/flash": {"error": "OutOfMemoryError: too much"},
    }
    (tmp_path / "attention.json").write_text(json.dumps({"facts": {"dry": True}, "runs": runs}))
    predictions = tmp_path / "predictions.json"
    predicted = {"64/triton": {"forward ms against flash": 6.0}, "128/triton": {"both ms against flash": 9.0}}
    predictions.write_text(json.dumps({"attention": predicted, "training": {"x/stock": {"tokens/s": 1.0}}}))
    text = report.write_report(tmp_path, predictions)
    assert (tmp_path / "gpu.md").read_text() == text + "\n"
    assert "| attention: 64/triton: forward ms against flash | 6 | 3 | 0.50 |" in text
    assert "| attention: 128/triton: both ms against flash | 9 | not measured |  |" in text
    assert "| training: x/stock: tokens/s | 1 | not measured |  |" in text
    assert "- 128/flash: OutOfMemoryError: too much" in text and "the figures mean nothing" in text


def test_what_a_test_said_is_one_line_of_the_report():
    failures = {"tests.a::b": "Traceback\n  x = 1\nValueError"}
    text = report.stage_table({"trainings": {"failed": 1, "failures": failures}})
    assert text.endswith("- trainings: failures: `tests.a::b` Traceback x = 1 ValueError")


def test_predictions_are_of_points_that_a_gpu_has(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    cuda = stage.torch.cuda
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(stage.torch.version, "cuda", "13.0")
    predictions = json.loads(report.PREDICTIONS.read_text(encoding="utf-8"))
    for name, points in predictions.items():
        known = [point for point, _ in STAGES[name]().points(Setting(tmp_path))]
        assert {*points} <= {*known}


def test_what_is_carried_is_refused_where_it_is_too_much(tmp_path, monkeypatch):
    (tmp_path / "real-text.tar.xz").write_bytes(bytes(3000))
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "text").write_bytes(bytes(10**6))  # stays here
    assert pack.whole(Setting(tmp_path, pack=tmp_path))["packed MB"] == pytest.approx(0.003)
    monkeypatch.setattr(pack, "MOST_MB", 0.001)
    with pytest.raises(RuntimeError, match="leave out --raw"):
        pack.whole(Setting(tmp_path, pack=tmp_path))


def test_what_is_unpacked_is_what_was_packed_to_the_nanosecond(tmp_path):
    files = {"raw": tmp_path / "a" / "train.en", "recipe": tmp_path / "b" / "data" / "dict.txt"}
    for number, (name, file) in enumerate(files.items()):
        file.parent.mkdir(parents=True)
        file.write_text(name)
        os.utime(file, ns=(0, 1_700_000_000_123_456_789 + number))
    pack.archived({"raw": tmp_path / "a", "recipe": tmp_path / "b"}, tmp_path / "packed.tar.xz")
    (tmp_path / "there").mkdir()
    subprocess.run(["tar", "-xJf", tmp_path / "packed.tar.xz", "-C", tmp_path / "there"], check=True)
    there = {"raw": tmp_path / "there/raw/train.en", "recipe": tmp_path / "there/recipe/data/dict.txt"}
    for number, (name, file) in enumerate(there.items()):
        assert file.read_text() == name and file.stat().st_mtime_ns == 1_700_000_000_123_456_789 + number
    assert not list(tmp_path.glob("*.part"))


def test_what_was_prepared_is_taken_and_models_share_the_start(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(real_text, "begin", lambda *arguments: calls.append(arguments[1:]))
    monkeypatch.setattr(real_text, "waited", lambda running: None)
    prepared = tmp_path / "prepared" / "data"
    prepared.mkdir(parents=True)
    (prepared / "dict.txt").write_text("a")
    setting = Setting(tmp_path / "out", prepared=tmp_path / "prepared")
    setting.output.mkdir()
    real_text.started(setting, "sentence")
    (setting.output / "recipe" / "start.pt").write_text("b")
    real_text.side_by_side(setting, ["sentence", "tree"], "train")
    real_text.side_by_side(setting, ["sentence", "tree"], "translate")
    beside = setting.output / "side-by-side"
    both = [(beside / name, name, step, 2) for step in ("train", "translate") for name in ("sentence", "tree")]
    assert calls == [(setting.output / "recipe", "sentence", "start"), *both]
    for name in ("data/dict.txt", "start.pt"):
        assert (beside / "tree" / name).samefile(beside / "sentence" / name)


def test_wheels_have_the_pinned_versions(tmp_path):
    first, second = pack.commands(tmp_path)
    pins = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert {word for word in first if "==" in word and not word.startswith("--")} <= {*pins}
    assert "--python-version" in first and pack.SOURCES[0] in second


def ran(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["gpu", *map(str, words)])
    return book.main()


def test_mistakes_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"--raw .*nowhere: no such folder"):
        ran(monkeypatch, "hardware", "--output", tmp_path, "--raw", tmp_path / "nowhere")
    monkeypatch.setattr(stage.torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="attention: PyTorch finds no GPU here; --dry-run"):
        ran(monkeypatch, "attention", "--output", tmp_path)


@pytest.mark.parametrize("name", ["hardware", "attention", "pack"])
def test_short_stages_run(name, tmp_path, monkeypatch):
    assert ran(monkeypatch, name, "report", "--dry-run", "--output", tmp_path, "--pack", tmp_path / "pack") == 0
    assert f"## {name}" in (tmp_path / "gpu.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_whole_book_runs(tmp_path, monkeypatch, capsys, starts_soon):
    words = [*STAGES.names(), "report", "--dry-run", "--output", tmp_path, "--pack", tmp_path / "pack"]
    assert ran(monkeypatch, *words) == 0
    printed = capsys.readouterr().out
    for name in STAGES.names():
        runs = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["runs"]
        assert runs and not any("error" in run for run in runs.values()), name
        assert f"{name}: {len(runs)} measured" in printed

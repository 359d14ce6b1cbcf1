"""Stages of GPU measurements with tiny sizes on a CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu import pack, real_text, stage
from benchmarks.gpu.stage import STAGES, Setting, Stage, run_stage
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import Registry

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def example(monkeypatch):
    """Registers a stage of three points, of which the second may fail; returns it and the list of measured points."""
    registry, called = Registry("stage"), []
    monkeypatch.setattr(stage, "STAGES", registry)

    @registry.register("example")
    class Example(Stage):
        minutes, fails = 1.0, True

        def points(self, setting):
            for name in ("a", "b", "c"):
                yield name, lambda name=name: self.measure(name)

        def measure(self, name):
            called.append(name)
            if name == "b" and Example.fails:
                raise ValueError("no memory")
            return {"ms": 1.0}

    return Example, called


def test_points_are_measured_once_and_failed_ones_again(example, tmp_path):
    kind, called = example
    first = run_stage("example", Setting(tmp_path, dry=True))
    assert (first.measured, first.failed) == (["a", "c"], ["b"])
    kept = json.loads((tmp_path / "example.json").read_text())["runs"]
    assert kept["a"] == {"ms": 1.0} and kept["b"]["error"] == "ValueError: no memory"
    kind.fails = False
    second = run_stage("example", Setting(tmp_path, dry=True))
    assert (second.existing, second.measured, second.failed) == (["a", "c"], ["b"], [])
    assert called == ["a", "b", "c", "b"]


def test_points_are_skipped_at_the_time_limit(example, tmp_path):
    kind, _ = example
    kind.fails = False
    seconds = iter([0, 0, 25, 25, 50, 50])  # the third would end at 75 of 60
    outcome = run_stage("example", Setting(tmp_path, dry=True), now=lambda: next(seconds))
    assert (outcome.measured, outcome.skipped) == (["a", "b"], ["c"])
    assert run_stage("example", Setting(tmp_path, dry=True)).measured == ["c"]
    kind.resumable, seconds = True, iter([0, 0, 25, 25, 50, 50, 75])
    assert run_stage("example", Setting(tmp_path / "resumable"), now=lambda: next(seconds)).skipped == []


def test_report_has_ratios_and_failures(tmp_path):
    runs = {
        "64/flash": {"forward ms": 6.0, "both ms": 20.0},
        "64/triton": {"forward ms": 2.0, "both ms": 4.0},
        "128/flash": {"error": "OutOfMemoryError: too much"},
    }
    (tmp_path / "attention.json").write_text(json.dumps({"facts": {"dry": True}, "runs": runs}))
    text = stage.write_report(tmp_path)
    assert "| 64/triton | 2 | 4 | 3 | 5 |" in text and "- 128/flash: OutOfMemoryError: too much" in text
    failures = {"tests.a::b": "Traceback\n  x = 1\nValueError"}
    text = stage.stage_table({"trainings": {"failed": 1, "failures": failures}})
    assert text.endswith("- trainings: failures: `tests.a::b` Traceback x = 1 ValueError")


def test_packed_data_is_up_to_date_without_training_text(tmp_path):
    raw, output, there = tmp_path / "raw", tmp_path / "recipe", tmp_path / "there"
    raw.mkdir()
    for split, documents in {"train": 40, "valid": 2, "test": 2, "unseen": 2}.items():
        for side in ("ja", "en"):
            raw.joinpath(f"{split}.{side}").write_text("a word of it\nand b c d e f g\n\n" * documents)
    config = tmp_path / "small.yaml"
    config.write_text("like: kyoto_ja_en\nprepare: {subwords: none}\nscores: {metrics: []}\n")
    pack.prepared(str(config), raw, output)
    pack.without_training_text(str(config), raw, output, tmp_path / "text")
    pack.archived(tmp_path / "text", tmp_path / "packed.tar.xz")
    there.mkdir()
    subprocess.run(["tar", "-xJf", tmp_path / "packed.tar.xz", "-C", there], check=True)
    assert set((there / "raw" / "train.en").read_bytes()) == {0}
    assert (there / "raw" / "test.en").read_text() == (raw / "test.en").read_text()
    before = (there / "recipe/data/data-bin/train.ja-en.en.bin").stat().st_mtime_ns
    pack.prepared(str(config), there / "raw", there / "recipe")
    after = there / "recipe/data/data-bin/train.ja-en.en.bin"
    assert after.stat().st_mtime_ns == before
    assert after.read_bytes() == (output / "data/data-bin/train.ja-en.en.bin").read_bytes()


def test_prepared_data_is_used_and_models_share_the_start(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(real_text, "start_recipe", lambda *arguments: calls.append(arguments[1:]))
    monkeypatch.setattr(real_text, "wait_for", lambda running: None)
    prepared = tmp_path / "prepared" / "data"
    prepared.mkdir(parents=True)
    (prepared / "dict.txt").write_text("a")
    setting = Setting(tmp_path / "out", prepared=tmp_path / "prepared")
    setting.output.mkdir()
    real_text.started(setting, "sentence")
    (setting.output / "recipe" / "start.pt").write_text("b")
    real_text.side_by_side(setting, ["sentence", "tree"], "train")
    folder = setting.output / "side-by-side"
    both = [(folder / name, name, "train", 2) for name in ("sentence", "tree")]
    assert calls == [(setting.output / "recipe", "sentence", "start"), *both]
    for name in ("data/dict.txt", "start.pt"):
        assert (folder / "tree" / name).samefile(folder / "sentence" / name)


def test_stage_without_a_gpu_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(stage.torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError):
        gpu.main(["attention", "--output", str(tmp_path)])


@pytest.mark.parametrize("name", ["hardware", "pack"])
def test_short_stages_run(name, tmp_path):
    words = [name, "report", "--dry-run", "--output", str(tmp_path), "--pack", str(tmp_path / "pack")]
    assert gpu.main(words) == 0
    assert f"## {name}" in (tmp_path / "gpu.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_all_stages_run(tmp_path, monkeypatch, starts_soon):
    monkeypatch.setattr(sys, "argv", ["gpu"])
    assert (
        gpu.main([*STAGES.names(), "report", "--dry-run", "--output", str(tmp_path), "--pack", str(tmp_path / "pack")])
        == 0
    )
    for name in STAGES.names():
        runs = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["runs"]
        assert runs and not any("error" in run for run in runs.values()), name

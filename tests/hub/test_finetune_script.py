"""scripts/finetune_pretrained.sh on a random model."""

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "finetune_pretrained.sh"


def run(output, environment):
    command = ["bash", str(SCRIPT), "--smoke", str(output)]
    environment = {**environment, "DOCNMT_SET_UP": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")
def test_script_from_import_to_scores(tmp_path, tmp_path_factory, imported):
    soon = imported.commands(tmp_path_factory.mktemp("commands"))
    told = run(tmp_path, soon)
    for name in ("sentence", "document"):
        lines = (tmp_path / name / "test.txt").read_text(encoding="utf-8").splitlines()
        source = (tmp_path / "corpus" / "test.src").read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(source)
        assert "accuracy" in (tmp_path / name / "contrast.txt").read_text(encoding="utf-8")
    assert "family: marian" in told.stdout
    scores = (tmp_path / "scores.txt").read_text(encoding="utf-8")
    assert "sentence" in scores and "document" in scores
    again = run(tmp_path, soon)
    assert "document: translated already" in again.stderr and (tmp_path / "scores.txt").read_text() == scores
    os.utime(tmp_path / "document" / "test.txt", (1, 1))  # as where the model was trained on since
    again = run(tmp_path, soon)
    assert "sentence: translated already" in again.stderr and "document: translated already" not in again.stderr
    assert (tmp_path / "scores.txt").read_text() == scores


def test_script_keeps_other_imports_and_passes_options(tmp_path):
    output, data = tmp_path / "output", tmp_path / "data"
    data.mkdir()
    for name in ("train", "valid", "test"):
        for side in ("en", "de"):
            (data / f"{name}.{side}").touch()

    def failure(model, **environment):
        command = ["bash", str(SCRIPT), str(model), str(data), str(output)]
        environment = {**os.environ, "DOCNMT_SET_UP": "1", "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode != 0
        return done.stderr

    assert f"--revision v1: {data} is a local path" in failure(data, IMPORT_OPTIONS="--revision v1")
    (output / "model").mkdir()
    (output / "model" / "manifest.json").touch()
    assert "was imported by other options" in failure(data / "other", IMPORT_OPTIONS="--revision v1")
    assert "was imported by other options" in failure(data, IMPORT_OPTIONS="--revision v2")
    assert "was imported" not in failure(data, IMPORT_OPTIONS="--revision v1")

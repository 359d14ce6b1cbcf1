"""``docnmt --user-dir``: what a package of one's own registers is known to the command, and to its jobs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docnmt_fairseq.cli import main
from tests.support import toy

METRIC = """
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric

@METRICS.register("loudness")
class Loudness(Metric):
    title, help = "loudness", "exclamation marks"
    def segment_statistics(self, translation, references):
        return [translation.count("!")]
    def score(self, sums):
        return sums[0]
"""
MECHANISM = """
from dataclasses import dataclass
import torch
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism, NoOptions
from docnmt_fairseq.options import option

@CONTEXT_MECHANISMS.register("nothing")
class Nothing(ContextMechanism):
    @dataclass(frozen=True)
    class Options(NoOptions):
        nothing_much: int = option(0, "how much")
    placements = ("block",)
    def __init__(self, layer, options):
        super().__init__()
    def forward(self, x, layout):
        return torch.zeros_like(x)
"""
BEGIN = """
import docnmt_fairseq
from {name} import loudness, nothing
docnmt_fairseq.register()
"""


@pytest.fixture
def mine(tmp_path):
    """Returns the folder of a package with a metric and a mechanism."""
    folder = tmp_path / "package_of_mine"
    folder.mkdir()
    for name, text in {"__init__": BEGIN.format(name=folder.name), "loudness": METRIC, "nothing": MECHANISM}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def run(module, *arguments):
    path = os.pathsep.join([str(Path(toy.PLUGIN).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-3000:]
    assert module != "docnmt_fairseq" or "Please install" not in done.stderr  # what fairseq would like to have
    return done.stdout


def test_a_metric_of_ones_own(mine, tmp_path):
    (tmp_path / "text").write_text("a!\nb!\n", encoding="utf-8")
    given = ["--reference", tmp_path / "text", "--system", f"it={tmp_path / 'text'}", "--metrics", "loudness"]
    assert "2.00" in run("docnmt_fairseq", "--user-dir", mine, "score", *given)


@pytest.mark.slow
def test_a_mechanism_of_ones_own_is_trained_and_translates_in_jobs_too(mine, data_bin, tmp_path):
    trained = [data_bin, "--task", "document_translation", "--arch", "document_transformer_nothing_tiny", *toy.TINY]
    trained += ["--nothing-much", "1", "--optimizer", "adam", "--max-tokens", "60", "--max-update", "1", *toy.HERE]
    run("fairseq_cli.train", *trained, "--user-dir", mine, "--save-dir", tmp_path / "model")
    data = toy.as_prepared(data_bin, tmp_path / "prepared")
    (tmp_path / "in.txt").write_text("a b\n\nc\n", encoding="utf-8")
    own = ["--path", tmp_path / "model/checkpoint_last.pt", "--data", data, "--cpu", "--max-len-b", "5"]
    own += ["--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt", "--workers", "2"]
    run("docnmt_fairseq", "--user-dir", mine, "translate", *own)
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.slow
def test_a_mechanism_of_ones_own_is_a_model_of_recipes(mine, tmp_path):
    given = ["en_de_small", "--smoke", "--models", "nothing", "--output", tmp_path / "out", "--updates", "2"]
    assert "nothing" in run("docnmt_fairseq", "--user-dir", mine, "recipe", *given)


MISTAKEN = {
    "nowhere": "not a package",
    "file": "not a package",
    "no_package": "not a package",
    "v1.0": "rename the folder",
    "json": "rename the folder",
    "re": "rename the folder",
}


@pytest.mark.parametrize("name", MISTAKEN)
def test_a_folder_that_cannot_be_imported_is_named(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    for folder in ("no_package", "v1.0", "json", "re"):
        Path(folder).mkdir()
    for folder in ("v1.0", "json", "re"):
        Path(folder, "__init__.py").touch()
    assert main(["--user-dir", name, "doctor"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"docnmt: error: --user-dir {name}: ") and MISTAKEN[name] in line


@pytest.mark.parametrize("option", [["--user", "nowhere"], ["--user=nowhere"]])
def test_an_abbreviation_is_imported_too(option, capsys):
    assert main([*option, "doctor"]) == 2
    assert "nowhere" in capsys.readouterr().err

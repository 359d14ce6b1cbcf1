"""``docnmt --user-dir``: what a custom package registers is known to the command."""

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


def test_custom_metric(mine, tmp_path):
    (tmp_path / "text").write_text("a!\nb!\n", encoding="utf-8")
    given = ["--reference", tmp_path / "text", "--system", f"it={tmp_path / 'text'}", "--metrics", "loudness"]
    assert "2.00" in run("docnmt_fairseq", "--user-dir", mine, "score", *given)


@pytest.mark.slow
def test_custom_mechanism_is_trained_and_translates(mine, data_bin, tmp_path):
    trained = [data_bin, "--task", "document_translation", "--arch", "document_transformer_nothing_tiny", *toy.TINY]
    trained += ["--nothing-much", "1", "--optimizer", "adam", "--max-tokens", "60", "--max-update", "1", *toy.HERE]
    run("fairseq_cli.train", *trained, "--user-dir", mine, "--save-dir", tmp_path / "model")
    data = toy.as_prepared(data_bin, tmp_path / "prepared")
    (tmp_path / "in.txt").write_text("a b\n\nc\n", encoding="utf-8")
    own = ["--path", tmp_path / "model/checkpoint_last.pt", "--data", data, "--cpu", "--max-len-b", "5"]
    own += ["--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"]
    run("docnmt_fairseq", "--user-dir", mine, "translate", *own)
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize(("option", "name"), [(["--user-dir", "nowhere"], "nowhere"), (["--user=json"], "json")])
def test_a_folder_that_cannot_be_imported_is_named(tmp_path, monkeypatch, capsys, option, name):
    monkeypatch.chdir(tmp_path)
    Path("json").mkdir()
    Path("json", "__init__.py").touch()
    assert main([*option, "doctor"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("docnmt: error: ") and name in line


def test_the_folder_of_the_package(capsys):
    assert main(["user-dir"]) == 0
    assert capsys.readouterr().out == f"{toy.PLUGIN}\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Returns a function that installs a package with an entry point."""
    folder = tmp_path / "installed"

    def install(source):
        (folder / "plugin_of_mine").mkdir(parents=True)
        (folder / "plugin_of_mine/__init__.py").write_text(source, encoding="utf-8")
        about = folder / "plugin_of_mine-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-of-mine\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[docnmt_fairseq.plugins]\nmine = plugin_of_mine\n")
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return install


def test_installed_packages_are_imported(installed, tmp_path):
    installed(METRIC + MECHANISM)
    (tmp_path / "text").write_text("so !\n")
    score = ["score", "--reference", tmp_path / "text", "--system", f"a={tmp_path / 'text'}", "--metrics", "loudness"]
    assert "1.00" in run("docnmt_fairseq", *score)
    script = "import docnmt_fairseq, fairseq.models as m; docnmt_fairseq.register(); print(*m.ARCH_MODEL_REGISTRY)"
    path = os.pathsep.join([str(Path(toy.PLUGIN).parent), os.environ["PYTHONPATH"]])
    environment = {**os.environ, "PYTHONPATH": path}
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert "document_transformer_nothing_tiny" in found.stdout.split(), found.stderr


def test_a_broken_package_is_named(installed, capsys, monkeypatch):
    installed("import a_module_that_is_missing")
    monkeypatch.syspath_prepend(os.environ["PYTHONPATH"])
    assert main(["user-dir"]) == 2
    assert "docnmt: error: plugin mine = plugin_of_mine: No module" in capsys.readouterr().err

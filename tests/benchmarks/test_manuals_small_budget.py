"""The handbooks on a small budget: what one machine found out stays when another adds its models."""

import json
import shutil
import sys

import pytest
import torch

from benchmarks.experiments import manuals_context_only, manuals_corrected, manuals_small_budget, manuals_told
from benchmarks.lib.store import Store
from docnmt_fairseq.checkpoints import read_checkpoint
from docnmt_fairseq.recipes.models import model

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _soon(starts_soon):
    """Models are trained sooner."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, ready_python):
    """Folder of the results, and below it that of the models: a start, a sentence-level and a conditional one."""
    folder = tmp_path_factory.mktemp("small_budget")
    command = ["small", "--work", str(folder / "work"), "--results", str(folder), "--updates", "1000", "--smoke"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [*command, "--models", "conditional-target"])
        patch.setattr(sys, "executable", ready_python)
        manuals_small_budget.main()
    return folder


def test_figures_of_models_whose_folders_are_gone_stay(trained, tmp_path):
    kept = tmp_path / "manuals_small_budget_1000.json"
    shutil.copyfile(trained / kept.name, kept)
    first = json.loads(kept.read_text(encoding="utf-8"))["runs"]
    assert [*first] == ["sentence-1", "conditional-target-1"]
    scores = first["conditional-target-1"]["scores"]["unseen"]
    assert {"shuffled", "none"} <= {*scores["contexts"]} and "significance" in scores and "cxmi" in scores
    assert [*first["sentence-1"]["distances"]] == ["test", "unseen"] and first["sentence-1"]["curve"]

    stored = Store(kept)
    for name, run in first.items():
        better = json.loads(json.dumps(run))
        better["seed"], better["scores"]["test"]["bleu"] = 2, run["scores"]["test"]["bleu"] + 2
        stored.add(f"{name[:-1]}2", better)
    assert [*stored.facts["consistency of references"]] == ["test", "unseen"]
    stored.facts["consistency of references"] = {"test": None, "unseen": 75.0}
    text = manuals_small_budget.report(stored, smoke=True, updates=1000, pieces=True)
    assert "in the references themselves: unseen 75.0 %." in text
    bleu = first["conditional-target-1"]["scores"]["test"]["bleu"]
    row = next(line for line in text.splitlines() if line.startswith("| conditional-target |"))
    assert f"{bleu + 1:.2f} ± 1.41" in row and row.endswith("| 1, 2 |")
    assert str(trained) not in text and "as they are trained: in pieces" in text
    assert "translate documents whole" in (trained / "manuals_small_budget_1000.md").read_text(encoding="utf-8")


def test_a_model_is_told_and_asked_with_every_fact(trained, tmp_path, monkeypatch, capsys):
    raw = tmp_path / "raw"
    command = ["told", "--work", str(trained / "work"), "--results", str(tmp_path), "--raw", str(raw), "--smoke"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        manuals_told.main()
    assert "train it with manuals_small_budget" in capsys.readouterr().err
    shutil.copytree(trained / "work" / "1000-updates" / "seed-1" / "fixtures", raw)
    for split in ("train", "valid", "test"):
        first = (raw / f"{split}.en").read_text(encoding="utf-8").split("\n").index("")
        (raw / f"{split}.documents.tsv").write_text(f"0\t{first}\tcontao\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", [*command, "--updates", "1000"])
    manuals_told.main()
    report = (tmp_path / "manuals_told.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in report.splitlines() if line.startswith("| ")]
    assert rows == ["| told", "| ---", "| nothing", "| the project", "| the register", "| both"]
    assert str(tmp_path) not in report and str(trained) not in report


def test_a_model_goes_on_from_references(trained, tmp_path, monkeypatch, capsys):
    command = ["corrected", "--work", str(trained / "work"), "--results", str(tmp_path), "--smoke"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        manuals_corrected.main()
    assert "has no translations of conditional-target" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [*command, "--updates", "1000"])
    manuals_corrected.main()
    report = (tmp_path / "manuals_corrected.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[:6] for line in report.splitlines() if line.startswith("| ") and "conditional" in line]
    before = ["the model's own", "the references", "references of other documents"]
    assert [row[4] for row in rows] == before * 2
    kept = json.loads((trained / "manuals_small_budget_1000.json").read_text(encoding="utf-8"))["runs"]
    scores = kept["conditional-target-1"]["scores"]
    assert [row[5] for row in rows[::3]] == [f"{scores[name]['bleu']:.2f}" for name in ("test", "unseen")]


def test_context_is_trained_on_top_of_a_finished_model(trained, tmp_path, monkeypatch, capsys, ready_python):
    monkeypatch.setattr(sys, "executable", ready_python)
    command = ["only", "--work", str(tmp_path / "work"), "--begin-from", str(trained / "work"), "--smoke"]
    command += ["--results", str(tmp_path), "--models", "conditional-frozen"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        manuals_context_only.main()
    assert "train it with manuals_small_budget" in capsys.readouterr().err and not (tmp_path / "work").exists()
    monkeypatch.setattr(sys, "argv", [*command, "--finished", "1000"])
    manuals_context_only.main()
    began = trained / "work" / "1000-updates" / "seed-1" / "models" / "sentence-1"
    models = tmp_path / "work" / "2000-updates" / "seed-1" / "models"
    assert not (models / "start").exists()
    kept, frozen, goes_on = (
        read_checkpoint(folder / "checkpoint_best.pt")["model"]
        for folder in (began, models / "conditional-frozen-1", models / "sentence-1")
    )
    assert all(torch.equal(values, frozen[name]) for name, values in kept.items()) and len(frozen) > len(kept)
    assert any(not torch.equal(values, goes_on[name]) for name, values in kept.items())
    report = (tmp_path / "manuals_context_only.md").read_text(encoding="utf-8")
    stored = json.loads((tmp_path / "manuals_context_only.json").read_text(encoding="utf-8"))
    first = json.loads((trained / "manuals_small_budget_1000.json").read_text(encoding="utf-8"))["runs"]["sentence-1"]
    assert stored["facts"]["began"]["1"]["bleu"] == first["scores"]["test"]["bleu"]
    assert f"updates (seed 1, test: BLEU {first['scores']['test']['bleu']:.2f}," in " ".join(report.split())
    row = next(line for line in report.splitlines() if line.startswith("| conditional-frozen |") and "," in line)
    parameters, of_them = stored["runs"]["conditional-frozen-1"]["parameters"]
    assert f"| {parameters} | {of_them} |" in report and row and parameters != of_them
    assert report.startswith(f"# {manuals_context_only.TITLE}")
    assert str(tmp_path) not in report and str(trained) not in report
    monkeypatch.setattr(sys, "argv", [*command, "--finished", "1000", "--updates", "500"])
    with pytest.raises(SystemExit):
        manuals_context_only.main()
    assert "holds models of other --finished and --updates" in capsys.readouterr().err


@pytest.mark.parametrize("way", manuals_context_only.WAYS)
def test_a_way_freezes_the_model_that_is_there(way):
    usual, chosen = model("conditional"), manuals_context_only.way_of(way)
    added = chosen.options(1000)[len(usual.options(1000)) :]
    assert added == manuals_context_only.WAYS[way] and "--freeze-sentence-model" in added


def test_what_is_translated_in_pieces_is_kept_apart():
    whole, pieces = (manuals_small_budget.dataset_of(1, 2000, cut) for cut in (False, True))
    assert whole.training == pieces.training and whole.view.given == {"max_document_sentences": 0} != pieces.view.given
    names = [manuals_small_budget.results_name(2000, cut) for cut in (False, True)]
    assert names == ["manuals_small_budget_2000", "manuals_small_budget_2000_pieces"]


def test_a_seed_has_a_start_of_its_own():
    first, second = (manuals_small_budget.dataset_of(seed, 2000).training for seed in (1, 2))
    assert (first.start.seed, second.start.seed) == (1, 2) and first.options == second.options


@pytest.mark.parametrize("way", manuals_small_budget.WAYS)
def test_a_way_is_its_model_but_for_what_it_changes(way):
    name, changed = manuals_small_budget.WAYS[way]
    usual, chosen = model(name), manuals_small_budget.way_of(way)
    assert chosen.options(1000) == [*usual.options(1000), *changed] and changed
    assert chosen.arch == usual.arch and way.startswith(f"{name}-")

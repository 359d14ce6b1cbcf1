"""The handbooks on a small budget: what one machine found out stays when another adds its models."""

import json
import shutil
import sys

import pytest

from benchmarks.experiments import manuals_small_budget
from benchmarks.lib.store import Store
from docnmt_fairseq.recipes.models import model

pytestmark = pytest.mark.slow


def test_figures_of_models_whose_folders_are_gone_stay(tmp_path, monkeypatch):
    command = ["manuals_small_budget", "--smoke", "--work", str(tmp_path / "work"), "--results", str(tmp_path)]
    command += ["--updates", "1000"]
    monkeypatch.setattr(sys, "argv", [*command, "--models", "conditional", "conditional-all"])
    manuals_small_budget.main()
    kept = tmp_path / "manuals_small_budget_1000.json"
    first = json.loads(kept.read_text(encoding="utf-8"))["runs"]
    assert [*first] == ["sentence-1", "conditional-1", "conditional-all-1"]
    scores = first["conditional-1"]["scores"]["unseen"]
    assert {"shuffled", "none"} <= {*scores["contexts"]} and "significance" in scores and "cxmi" in scores
    assert [*first["sentence-1"]["distances"]] == ["test", "unseen"] and first["sentence-1"]["curve"]

    shutil.rmtree(tmp_path / "work")
    stored = Store(kept)
    for name, run in first.items():
        better = json.loads(json.dumps(run))
        better["seed"], better["scores"]["test"]["bleu"] = 2, run["scores"]["test"]["bleu"] + 2
        stored.add(f"{name[:-1]}2", better)
    assert [*stored.facts["consistency of references"]] == ["test", "unseen"]
    stored.facts["consistency of references"] = {"test": None, "unseen": 75.0}
    text = manuals_small_budget.report(stored, smoke=True, updates=1000)
    assert "in the references themselves: unseen 75.0 %." in text
    bleu = first["conditional-1"]["scores"]["test"]["bleu"]
    row = next(line for line in text.splitlines() if line.startswith("| conditional |"))
    assert f"{bleu + 1:.2f} ± 1.41" in row and row.endswith("| 1, 2 |")
    assert str(tmp_path) not in text


def test_a_seed_has_a_start_of_its_own():
    first, second = (manuals_small_budget.dataset_of(seed, 2000).training for seed in (1, 2))
    assert (first.start.seed, second.start.seed) == (1, 2) and first.options == second.options


@pytest.mark.parametrize("way", manuals_small_budget.WAYS)
def test_a_way_is_conditional_attention_but_for_what_it_changes(way):
    usual = model("conditional").options(1000)
    options = manuals_small_budget.way_of(way).options(1000)
    assert options == [*usual, *manuals_small_budget.WAYS[way]] and manuals_small_budget.WAYS[way]

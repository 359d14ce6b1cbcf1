"""The short trainings that a recipe for little data is chosen by."""

import sys
from dataclasses import replace

import pytest

from benchmarks.experiments import small_data
from docnmt_fairseq import cli

UPDATES = 12


@pytest.mark.parametrize("name", small_data.VARIANTS)
def test_variants_see_as_much_and_have_one_thing_changed(name):
    base, budget = (small_data.budget_of(small_data.VARIANTS[one], UPDATES) for one in (small_data.BASE, name))
    assert budget.updates * budget.batch_tokens == base.updates * base.batch_tokens
    variant = small_data.VARIANTS[name]
    assert budget.size == base.size and budget.options[len(budget.options) - len(variant.options) :] == [
        *variant.options
    ]
    changed = [bool(variant.options), bool(variant.without), variant.batch > 1, bool(variant.vocabulary)]
    assert sum(changed) == (name != small_data.BASE)
    left = [word for word in base.options if word not in budget.options and not word.isdigit()]
    assert left == [*variant.without]


def test_other_vocabularies_are_prepared(tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(cli, "main", lambda words: called.append(words) or 0)
    assert small_data.data_of(tmp_path, tmp_path / "raw", 0) == tmp_path / "data" and not called
    assert small_data.data_of(tmp_path, tmp_path / "raw", 4000) == tmp_path / "vocabularies" / "4000" / "data"
    (words,) = called
    assert "vocab_size: 4000" in (tmp_path / "vocabularies" / "4000" / "recipe.yaml").read_text(encoding="utf-8")
    assert words[1].endswith("recipe.yaml") and words[-2:] == ["--until", "prepare"]


@pytest.mark.slow
def test_trainings_are_kept_and_told(tmp_path, monkeypatch, starts_soon):
    """On the recipe's made-up documents, in the smallest size."""
    work, full, trained = tmp_path / "work", small_data.budget_of, []
    assert cli.main(["recipe", "en_de_manuals", "--smoke", "--output", str(work), "--until", "prepare"]) == 0

    def small(variant, updates):
        trained.append(variant)
        return replace(full(variant, updates), size="tiny", batch_tokens=500 * variant.batch)

    monkeypatch.setattr(small_data, "budget_of", small)
    monkeypatch.setattr(small_data, "RESULTS", tmp_path)
    monkeypatch.setattr("benchmarks.lib.machine.RESULTS", tmp_path)
    command = ["small_data", "--work", str(work), "--raw", "raw", "--updates", "12", "--only"]
    told = []
    for names in ([small_data.BASE], [small_data.BASE, "batches × 2"]):
        monkeypatch.setattr(sys, "argv", [*command, *names])
        small_data.main()
        told.append((tmp_path / "small_data.md").read_text(encoding="utf-8"))
    rows = [[line for line in text.splitlines() if line.startswith(("| as the", "| batches"))] for text in told]
    assert len(rows[0]) == 1 and len(rows[1]) == 2 and rows[0][0] == rows[1][0]
    assert rows[1][1].count("|") == rows[0][0].count("|") and len(trained) == 3
    assert (tmp_path / "small_data.png").stat().st_size > 0 and str(tmp_path) not in told[1]

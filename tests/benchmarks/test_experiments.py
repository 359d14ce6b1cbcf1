"""Experiments: which trainings they run, their tables, and small runs of each."""

import json

import pytest
import torch
from fairseq import options

import docnmt_fairseq
from benchmarks.experiments import comparison, context_choice, handbooks, long_range, selection
from benchmarks.experiments import handbooks_analysis as analysis
from benchmarks.experiments.long_range import Cell, Schedule, training_of
from benchmarks.lib.reporting import Store
from docnmt_fairseq.checkpoints import read_checkpoint
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.evaluation.texts import References
from docnmt_fairseq.models.transformer.presets import SIZES

DE = RULES["de"]()
REFERENCE = ["Klick hier.", "Hast du es?", "Das ist gut.", "Du siehst es.", "Dein Haus.", "Nimm dich in Acht.", ""]
FORMAL = ["Öffnen Sie es.", "Haben Sie es?", "Gut.", "Sehen Sie.", "Sind Sie da?", ""]


def run_of(name, seed, near, far):
    right = {kind: {"1": [near, 10], "5": [far, 10], "6": [far, 30]} for kind in ("ambiguous", "pronoun")}
    scores = {"bleu": 50.0 + seed, "chrf": 60.0, "curve": [(150, 3.0 + seed), (300, 2.0)]}
    known = {"part": "synthetic", "model": name, "seed": seed, "updates": 1500, "parameters": 1234}
    return {**known, **scores, "right_of_cases": right}


def test_comparison_report_has_one_row_per_model(tmp_path):
    stored = Store(tmp_path / "comparison.json")
    stored.facts["ceilings"] = {"ambiguous": 0.4, "pronoun": 0.3}
    stored.add_call()
    for one in (run_of("tree", 2, 10, 2), run_of("sentence", 1, 3, 3), run_of("tree", 1, 8, 6)):
        stored.add(f"{one['model']}-{one['seed']}", one)
    comparison.report(stored, comparison.Suite.read("mechanisms"), "mechanisms", tmp_path)
    text = (tmp_path / "comparison.md").read_text()
    assert "| tree | 80.0 / 100.0 | – / – | – / – | 30.0 / 10.0 | – / – |" in text
    assert "| tree | 1,234 | 2.000 / 2.000 | 51.00 / 52.00 | 60.00 / 60.00 | 40.0 / 28.0 | 40.0 / 28.0 |" in text
    assert (
        text.index("| sentence |") < text.index("| tree |") and (tmp_path / "comparison_synthetic.png").stat().st_size
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in comparison.SUITES.glob("*.yaml")))
def test_models_of_a_suite_have_known_options(name):
    docnmt_fairseq.register()
    suite = comparison.Suite.read(name)
    for part in comparison.PARTS:
        budget, models = suite.dataset(part).training, suite.models(part)
        assert budget.size in SIZES and len(models) > 1
        for one in models.values():
            words = ["data", "--task", one.task, "--arch", f"{one.arch}_{budget.size}", "--optimizer", "adam"]
            words += ["--lr-scheduler", "inverse_sqrt"]
            words += [*budget.options, *one.options(budget.updates)]
            parsed = options.parse_args_and_arch(options.get_training_parser(), words)
            assert parsed.task == one.task


def chain_of(training):
    """Returns a training and those that it depends on."""
    found = [training]
    while previous := found[-1].finetunes or found[-1].continues:
        found.append(previous)
    return found


def test_long_range_models_share_their_stages():
    schedule = Schedule(short=12, long=8, anneal_start=2, anneal_end=5)
    cells = [("all", 0), ("schedule", 1), ("schedule", 4), ("at once", 4), ("from start", 4)]
    chains = {cell: chain_of(training_of(Cell("tree", *cell, 1), schedule)) for cell in cells}
    assert [chain[-1] == chains["all", 0][-1] for chain in chains.values()] == [True, True, True, True, False]
    assert chains["schedule", 1][1] == chains["schedule", 4][1] and chains["schedule", 4][1].updates == 2
    assert all(chain[0].updates == 8 and chain[-1].updates == 12 for chain in chains.values())
    assert chains["from start", 4][-1].options[-2:] == ["--context-top-t", "4"]
    names = [cell.name for cell in long_range.cells(["conditional", "tree"], [4, 1], [1, 2])]
    assert len(names) == 2 * 2 * (1 + 3 * 2) == len({*names})


@pytest.mark.slow
def test_long_range_runs_and_is_not_repeated(tmp_path, monkeypatch, starts_soon):
    monkeypatch.setattr(long_range, "SEARCH", [*long_range.SEARCH, "--max-len-b", "8"])
    words = [
        "--mechanisms",
        "tree",
        "--top-t",
        "2",
        "--seeds",
        "1",
        "--train-documents",
        "60",
        "4",
        "--test-documents",
        "2",
        "--updates",
        "4",
        "4",
        "1",
        "3",
    ]
    words += ["--work", str(tmp_path / "work"), "--results", str(tmp_path)]
    long_range.main(words)
    runs = json.loads((tmp_path / "long_range.json").read_text())["runs"]
    assert [run["regime"] for run in runs.values()] == list(long_range.REGIMES)
    checkpoints = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").glob("*/checkpoint_last.pt")}
    assert len(checkpoints) == 2 + 5  # short: all, t = 2; long: shared by schedules, and one per regime
    long_range.main(words)
    assert checkpoints == {path: path.stat().st_mtime_ns for path in checkpoints}


@pytest.mark.slow
def test_selection_runs(tmp_path, monkeypatch, starts_soon):
    for name, updates in (("SHORT", 4), ("WINDOW_START", 2), ("CHANGE", 3), ("END", 4)):
        monkeypatch.setattr(selection, name, updates)
    monkeypatch.setattr(long_range, "VALIDATE_EVERY", 1)
    monkeypatch.setattr(long_range, "SEARCH", [*long_range.SEARCH, "--max-len-b", "8"])
    wanted = [selection.Cell(one, 4, selection.IN_WINDOW, 1) for one in ("conditional", "tree")]
    monkeypatch.setattr(selection, "cells", lambda *_: wanted)
    words = ["--work", str(tmp_path / "work"), "--results", str(tmp_path), "--documents", "24", "4", "2"]
    selection.main(words)
    flat, tree = json.loads((tmp_path / "selection.json").read_text())["runs"].values()
    assert flat["nll"][:3] == tree["nll"][:3] and [update for update, _ in flat["nll"]] == [1, 2, 3, 4]


def test_register_by_distance():
    references = References((), [[REFERENCE[:-1], FORMAL[:-1]]], None, [])
    distances = list(analysis.distances_of(references, DE))
    assert distances == [None, None, 1, 2, 1, 1, None, 1, 1, 2, 1]
    lines = [*REFERENCE[:-1], *FORMAL[:-1]]
    labels = [DE.register_of(line) for line in lines]
    wrong = [line.replace("Dein Haus", "Haben Sie ein Haus") for line in lines]
    assert analysis.right_by_distance(wrong, labels, distances, DE) == {
        "1": [3, 4], "2–3": [2, 2], "4–8": [0, 0], "9 and more": [0, 0], "none before": [2, 2],
    }  # fmt: skip


def scores_of(register, gain=None):
    """Scores of a model as small-budget stores them; without a gain those of the baseline."""

    def translated(right):
        return {
            "bleu": right / 4,
            "metrics": {"register": {"score": right}, "register-consistency": {"score": right / 2}},
        }

    if gain is None:
        return {"test": translated(register)}
    contexts = {"shuffled": translated(70), "none": translated(75)}
    more = {"significance": {"difference": gain, "p_value": 0.25}, "cxmi": {"true": gain / 2, "shuffled": -gain}}
    return {"test": {**translated(register), "contexts": contexts, **more}}


def test_summaries_by_model_and_by_updates(tmp_path):
    for updates in (3000, 1000):
        stored = Store(tmp_path / f"manuals_small_budget_{updates}.json")
        for seed in (2, 1):
            stored.add(f"sentence-{seed}", {"model": "sentence", "seed": seed, "scores": scores_of(80 + seed)})
            for name, right in (("memory", 82), ("conditional", 90)):
                run = {"model": name, "seed": seed, "scores": scores_of(right + seed, gain=0.2 * seed)}
                stored.add(f"{name}-{seed}", run)
        stored.add("conditional-3", {"model": "conditional", "seed": 3, "scores": scores_of(10, gain=9)})  # no baseline
    handbooks.main(["by-model", "--updates", "3000", "--results", str(tmp_path)])
    text = (tmp_path / "manuals_by_model_3000.md").read_text(encoding="utf-8")
    cells = "75.0, 75.0 | 70.0, 70.0 | +0.20, +0.40 | 0.250, 0.250"
    assert f"| conditional | 2 | 91.0, 92.0 | {cells} | 45.5, 46.0 | +0.10, +0.20 | -0.20, -0.40 |" in text
    assert text.index("| conditional |") < text.index("| memory |") < text.index("| sentence | 2 | 81.0, 82.0 |  |")
    handbooks.main(["by-updates", "--results", str(tmp_path)])
    text = (tmp_path / "manuals_by_updates.md").read_text(encoding="utf-8")
    assert text.index("| 1,000 | 2 | 20.375 | 22.875 |") < text.index("| 3,000 | 2 |")
    for words in (["by-model", "--updates", "4000"], ["by-updates", "--models", "han"]):
        with pytest.raises(SystemExit):
            handbooks.main([*words, "--results", str(tmp_path)])


@pytest.mark.slow
def test_studies_that_train(tmp_path, monkeypatch, starts_soon):
    monkeypatch.setattr("docnmt_fairseq.recipes.recipe.SMOKE_UPDATES", 4)
    folders = ["--work", str(tmp_path / "work"), "--results", str(tmp_path), "--smoke"]
    handbooks.main(["small-budget", *folders, "--updates", "1000", "--models", "conditional"])
    stored = Store(tmp_path / "manuals_small_budget_1000.json")
    assert [*stored.runs] == ["sentence-1", "conditional-1"]
    scores = stored.runs["conditional-1"]["scores"]
    assert {"shuffled", "none"} <= {*scores["unseen"]["contexts"]} and "cxmi" in scores["unseen"]
    assert "as whole documents" in (tmp_path / "manuals_small_budget_1000.md").read_text(encoding="utf-8")

    seed = tmp_path / "work" / "1000-updates" / "seed-1"
    folders[1] = str(tmp_path / "more")
    words = ["context-only", *folders, "--models", "conditional-frozen", "--initial-work", str(tmp_path / "work")]
    with pytest.raises(SystemExit):
        handbooks.main(words)  # the default of --finished is another one
    handbooks.main([*words, "--finished", "1000"])
    models = tmp_path / "more" / "2000-updates" / "seed-1" / "models"
    folders = (seed / "models" / "sentence-1", models / "conditional-frozen-1", models / "sentence-1")
    initial, frozen, trained = (read_checkpoint(folder / "checkpoint_best.pt")["model"] for folder in folders)
    assert all(torch.equal(values, frozen[name]) for name, values in initial.items()) and len(frozen) > len(initial)
    assert any(not torch.equal(values, trained[name]) for name, values in initial.items())


@pytest.mark.slow
def test_talks_and_news(tmp_path, monkeypatch, starts_soon):
    monkeypatch.setattr("docnmt_fairseq.recipes.recipe.SMOKE_UPDATES", 2)
    words = ["talks-and-news", "--work", str(tmp_path / "work"), "--results", str(tmp_path), "--smoke"]
    handbooks.main([*words, "--models", "sentence"])
    (run,) = Store(tmp_path / "talks_and_news.json").runs.values()
    assert [*run["scores"]] == ["test", "news"] and run["curve"]


def test_similarity_to_training_documents():
    similarity = context_choice.similarity_to([["a red house", "it is old ."], ["press the key"]])
    same, other, half = similarity([["a red house", "it is old ."], ["nobody knew"], ["press the red button"]])
    assert same == pytest.approx(1) and other == 0 and 0 < half < 1


@pytest.mark.slow
def test_choice_of_context_runs(tmp_path, monkeypatch, starts_soon):
    monkeypatch.setattr("docnmt_fairseq.recipes.recipe.SMOKE_UPDATES", 4)
    context_choice.main(["--work", str(tmp_path / "work"), "--results", str(tmp_path), "--smoke"])
    rows = (tmp_path / "context_choice.md").read_text(encoding="utf-8").splitlines()
    systems = [row.split(" | ")[0] for row in rows if row.startswith("| ")]
    assert systems[2:5] == ["| sentence-level", "| context", "| false context"]
    assert "| similarity, 10%, otherwise no context" in systems

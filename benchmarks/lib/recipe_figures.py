"""Figures of models that a recipe trained, as reports keep them from one call to the next and show them."""

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import call, machine, table
from benchmarks.lib.store import Store
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.results import read_scores
from docnmt_fairseq.recipes.run import Recipe
from docnmt_fairseq.recipes.run_probes import read_probes
from docnmt_fairseq.recipes.table import scores_table

BASELINE = "sentence"


def figures_of(recipe: Recipe, name: str, seed: int) -> Dict[str, Any]:
    """Returns what the recipe found out about a model that is trained and asked, and its validation curve."""
    folder, scores = recipe.output / "models" / f"{name}-{seed}", {}
    for test_set in recipe.dataset.test_sets:
        files = ResultFiles(folder, test_set)
        probed = read_probes(files, recipe.dataset.probes) if recipe.models[name].sees_context else {}
        scores[test_set] = {**read_scores(files, significance=name != BASELINE), **probed}
    return {"model": name, "seed": seed, "scores": scores, "curve": validation_curve(folder / "train.log")}


def remember(stored: Store, recipe: Recipe) -> None:
    """Keeps what figures of the recipe are made with: sentences of its splits, machine, command line."""
    names = {split: test_set for test_set, split in recipe.dataset.test_sets.items()}
    counted = json.loads((recipe.output / "data" / "manifest.json").read_text(encoding="utf-8"))["counts"]
    stored.facts["counts"] = {names.get(split, split): values["sentences"] for split, values in counted.items()}
    remember_call(stored, recipe.options.raw)


def remember_call(stored: Store, raw: Optional[Path]) -> None:
    """Keeps machine and command line."""
    stored.facts["machines"] = list(dict.fromkeys([*stored.facts.get("machines", []), machine()]))
    stored.called(call(raw))


def by_model(stored: Store, names: Sequence[str]) -> Dict[str, List[Dict[str, Any]]]:
    """Returns the runs of each model that there are some of, seed by seed, in the order of the names."""
    found = {name: [run for run in stored.runs.values() if run["model"] == name] for name in names}
    return {name: sorted(runs, key=lambda run: run["seed"]) for name, runs in found.items() if runs}


def scores_of(dataset: DatasetConfig, runs: Mapping[str, List[Dict[str, Any]]], stored: Store, smoke: bool) -> str:
    """Returns the recipe's table of all runs."""
    scores = {
        test_set: {name: {run["seed"]: run["scores"][test_set] for run in seeds} for name, seeds in runs.items()}
        for test_set in dataset.test_sets
    }
    return scores_table(dataset, scores, stored.facts["counts"], smoke, BASELINE)


def losses_of(runs: Mapping[str, List[Dict[str, Any]]]) -> List[str]:
    """Returns the lines of a section on validation losses."""
    losses = {name: [min(loss for _, loss in run["curve"]) for run in seeds] for name, seeds in runs.items()}
    rows = [[name, " / ".join(f"{one:.3f}" for one in found)] for name, found in losses.items()]
    told = "Lowest loss, bits a token, seeds beside each other in order."
    return ["## Validation", "", told, "", table(["model", "loss"], rows)]


def made_with(stored: Store) -> List[str]:
    """Returns the lines at a report's end: command lines and machines."""
    return [*(f"`{one}`  " for one in stored.facts["calls"]), *stored.facts["machines"]]

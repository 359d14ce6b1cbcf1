"""Results of models that a recipe trained, for the reports of experiments."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.lib.reporting import Store, side_by_side, table
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.recipe import Recipe
from docnmt_fairseq.recipes.table import scores_table

BASELINE = "sentence"
CONTEXTS = {"true": "own document", "shuffled": "sentences of other documents", "none": "no context"}
_UPDATE = re.compile(r'"valid_num_updates": "(\d+)"')
_LOSSES = [re.compile(rf'"valid_{name}": "([\d.]+)"') for name in ("nll_loss", "loss")]
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+) \(num\. trained: ([\d,]+)\)")


def validation_curve(*logs: Path) -> list[tuple[int, float]]:
    """Returns update and validation loss (bits per token; nll if logged) of every validation in training logs.

    Args:
        logs: logs of consecutive trainings; the last value counts if an update occurs twice.
    """
    found: dict[int, float] = {}
    for log in logs:
        for line in log.read_text(encoding="utf-8").splitlines():
            update = _UPDATE.search(line)
            losses = [loss for pattern in _LOSSES for loss in pattern.findall(line)]
            if update and losses:
                found[int(update[1])] = float(losses[0])
    return sorted(found.items())


def parameters(log: Path) -> tuple[int, int]:
    """Returns the number of parameters and of trained parameters from a training log."""
    total, trained = _PARAMETERS.findall(log.read_text(encoding="utf-8"))[-1]
    return int(total.replace(",", "")), int(trained.replace(",", ""))


def results_of(recipe: Recipe, name: str, seed: int) -> dict[str, Any]:
    """Returns scores, probes and validation curve of a trained model."""
    folder, scores = recipe.output / "models" / f"{name}-{seed}", {}
    for test_set in recipe.dataset.test_sets:
        scores[test_set] = recipe.scores(name, seed, test_set, significance=name != BASELINE)
    return {"model": name, "seed": seed, "scores": scores, "curve": validation_curve(folder / "train.log")}


def add_counts(stored: Store, recipe: Recipe) -> None:
    """Records the number of sentences of each split, machine and command."""
    names = {split: test_set for test_set, split in recipe.dataset.test_sets.items()}
    counted = json.loads((recipe.output / "data" / "manifest.json").read_text(encoding="utf-8"))["counts"]
    stored.facts["counts"] = {names.get(split, split): values["sentences"] for split, values in counted.items()}
    stored.add_call(recipe.options.raw)


def score_sections(dataset: DatasetConfig, runs: Mapping[str, Sequence[dict]], stored: Store, smoke: bool) -> list[str]:
    """Returns the recipe's score table and a table of validation losses.

    Args:
        dataset: configuration of the data set.
        runs: runs by model.
        stored: store with the counts of sentences.
        smoke: artificial text; the table says so.
    """
    scores = {
        test_set: {name: {run["seed"]: run["scores"][test_set] for run in seeds} for name, seeds in runs.items()}
        for test_set in dataset.test_sets
    }
    rows = [
        [name, side_by_side([min(loss for _, loss in run["curve"]) for run in seeds], 3)]
        for name, seeds in runs.items()
    ]
    return [
        scores_table(dataset, scores, stored.facts["counts"], smoke, BASELINE),
        "## Validation",
        "Lowest loss in bits per token, seeds in order.",
        table(["model", "loss"], rows),
    ]

"""What models of the handbooks' small budgets make of their context, seed by seed, as manuals_small_budget keeps it."""

from typing import Any, List, Mapping

from benchmarks.lib.recipe_figures import BASELINE

TEST = "test"
WAYS = {"true": "its document", "shuffled": "other documents' sentences", "none": "the sentence alone"}


def seeds_beside_baseline(runs: Mapping[str, Mapping[str, Any]], model: str) -> List[int]:
    """Returns the seeds in which both a model and the sentence-level one are trained, in order."""
    return sorted(run["seed"] for run in runs.values() if run["model"] == model and f"{BASELINE}-{run['seed']}" in runs)


def values(runs: Mapping[str, Mapping[str, Any]], model: str, seeds: List[int], measure: str, way: str) -> List[float]:
    """Returns a measure of a model on the test set, a value a seed.

    Args:
        runs: by model and seed.
        model: name.
        seeds: of the model.
        measure: "bleu", "cxmi", or the name of a metric.
        way: key of WAYS, how the test set is translated.
    """
    found = []
    for seed in seeds:
        scores = runs[f"{model}-{seed}"]["scores"][TEST]
        if measure == "cxmi":
            found.append(scores["cxmi"][way])
            continue
        translated = scores if way == "true" else scores["contexts"][way]
        found.append(translated["bleu"] if measure == "bleu" else translated["metrics"][measure]["score"])
    return found

"""What each model makes of its context: the models of one of the handbooks' small budgets beside each other.

    python -m benchmarks.experiments.manuals_by_model [--updates 4000]

Reads benchmarks/results/manuals_small_budget_UPDATES.json; trains nothing. Writes
benchmarks/results/manuals_by_model_UPDATES.md and .png.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Dict, List, Mapping

from benchmarks.experiments.manuals_small_budget import results_name
from benchmarks.lib.context_figures import TEST, WAYS, seeds_beside_baseline, values
from benchmarks.lib.machine import RESULTS, call, table, write
from benchmarks.lib.recipe_figures import BASELINE
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

HEADER = [
    "model", "seeds", "register", "alone", "among others'", "gain in BLEU", "p", "documents in one register",
    "CXMI", "CXMI among others'",
]  # fmt: skip
READING = """\
Test set, documents whole; the model whose registers are most often right first, seeds beside each other in order.
Register: right, of the marked lines whose translation shows one, in %. *Alone*: each sentence translated by itself;
*among others'*: among sentences of other documents. Gain in BLEU over the sentence-level model of the same seed, p by
documents resampled. CXMI: nats a sentence."""


@dataclass(frozen=True)
class Found:
    """What was found of a model, a value a seed.

    Attributes:
        seeds: that have the sentence-level model, too.
        register, cxmi: by way of translating; of the sentence-level model "true" alone, and nothing.
        gain: BLEU over the sentence-level model of the seed; empty for that model, and so is
        p: of that gain.
        together: documents in one register, in %.
    """

    seeds: List[int]
    register: Dict[str, List[float]]
    cxmi: Dict[str, List[float]]
    gain: List[float]
    p: List[float]
    together: List[float]


def found_of(runs: Mapping[str, Mapping[str, Any]], model: str) -> Found:
    """Returns what the runs, by model and seed, say of a model."""
    seeds = seeds_beside_baseline(runs, model)
    ways = ["true"] if model == BASELINE else list(WAYS)
    register = {way: values(runs, model, seeds, "register", way) for way in ways}
    together = values(runs, model, seeds, "register-consistency", "true")
    if model == BASELINE:
        return Found(seeds, register, {}, [], [], together)
    compared = [runs[f"{model}-{seed}"]["scores"][TEST]["significance"] for seed in seeds]
    cxmi = {way: values(runs, model, seeds, "cxmi", way) for way in ("true", "shuffled")}
    gains, p_values = ([one[key] for one in compared] for key in ("difference", "p_value"))
    return Found(seeds, register, cxmi, gains, p_values, together)


def models_of(runs: Mapping[str, Mapping[str, Any]]) -> Dict[str, Found]:
    """Returns what was found of each model, that whose registers are most often right first."""
    names = dict.fromkeys(run["model"] for run in runs.values())
    found = {name: found_of(runs, name) for name in names if seeds_beside_baseline(runs, name)}
    return dict(sorted(found.items(), key=lambda one: mean(one[1].register["true"]), reverse=True))


def row(name: str, found: Found) -> List[str]:
    """Returns a row of the table."""

    def shown(of_seeds: List[float], form: str) -> str:
        return ", ".join(format(value, form) for value in of_seeds)

    registers = [shown(found.register.get(way, []), ".1f") for way in ("true", "none", "shuffled")]
    gains = [shown(found.gain, "+.2f"), shown(found.p, ".3f"), shown(found.together, ".1f")]
    cxmi = [shown(found.cxmi.get(way, []), "+.2f") for way in ("true", "shuffled")]
    return [name, str(len(found.seeds)), *registers, *gains, *cxmi]


def figure(models: Mapping[str, Found], path: Path) -> None:
    """Draws a line a model and a point a seed: register and CXMI by way of translating, and the gain in BLEU."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 1.6 + 0.32 * len(models)), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(1, 3, sharey=True, width_ratios=[2, 1, 1])
    for place, found in enumerate(models.values()):
        for colour, marker, (way, said) in zip(COLOURS, MARKERS, WAYS.items()):
            for axis, by_way in ((axes[0], found.register), (axes[1], found.cxmi)):
                of_seeds = by_way.get(way, [])
                label = said if place == 0 else None
                axis.plot(of_seeds, [place] * len(of_seeds), marker, color=colour, alpha=0.7, label=label)
        axes[2].plot(found.gain, [place] * len(found.gain), MARKERS[0], color=COLOURS[0], alpha=0.7)
    if BASELINE in models:
        axes[0].axvline(mean(models[BASELINE].register["true"]), color="0.3", linestyle="--", label="sentence-level")
    titles = ("register right, %", "CXMI, nats a sentence", "gain in BLEU")
    for axis, title in zip(axes, titles):
        axis.set(title=title, yticks=range(len(models)), yticklabels=list(models))
        axis.grid(axis="y", alpha=0.25)
        if axis is not axes[0]:
            axis.axvline(0, color="0.3", linestyle="--")
    axes[0].invert_yaxis()
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    drawn.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=4000, help="of each model after the start (default: 4000)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder that is read and written to")
    args = parser.parse_args()
    read = args.results / f"{results_name(args.updates, False)}.json"
    models = models_of(Store(read).runs)
    if not models:
        parser.error(f"{read}: no model beside a sentence-level one; train them with manuals_small_budget")
    name = f"manuals_by_model_{args.updates}"
    figure(models, args.results / f"{name}.png")
    lines = [f"# What models make of their context, {args.updates:,} updates", "", f"![By model]({name}.png)", ""]
    lines += [table(HEADER, [row(*one) for one in models.items()]), "", READING, "", f"`{call(None)}`"]
    write(f"{name}.md", "\n".join(lines), args.results)


if __name__ == "__main__":
    main()

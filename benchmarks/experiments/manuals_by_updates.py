"""How much a model makes of its context by how long it is trained: the handbooks' small budgets beside each other.

    python -m benchmarks.experiments.manuals_by_updates [--model conditional] [--pieces]

Reads benchmarks/results/manuals_small_budget_UPDATES.json of all numbers of updates in which the model is, or those of
translations --pieces by pieces; trains nothing. Writes benchmarks/results/manuals_by_updates.md and .png.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Dict, Iterable, List, Mapping

from benchmarks.experiments.manuals_small_budget import NAME, PIECES, WHOLE, results_name
from benchmarks.lib.context_figures import WAYS, seeds_beside_baseline, values
from benchmarks.lib.machine import RESULTS, call, table, write
from benchmarks.lib.recipe_figures import BASELINE
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.plots import COLOURS

HEADER = [
    "updates", "seeds", "BLEU, sentence-level", "BLEU", "gain", "register, sentence-level", "register", "among others'",
    "alone", "CXMI", "CXMI among others'",
]  # fmt: skip
READING = """\
Test set; *updates*: after the sentence-level start, in which the learning rate falls to zero, so that every row is a
training of its own. *Among others'*: translated among sentences of other documents; *alone*: each sentence by itself.
Register: right, of the marked lines whose translation shows one, in %. CXMI: nats a sentence. Means over seeds."""


@dataclass(frozen=True)
class Point:
    """What was found with a number of updates, means over seeds.

    Attributes:
        updates, seeds: how many.
        bleu, register: by way; "sentence": of the sentence-level model.
        cxmi: by way.
    """

    updates: int
    seeds: int
    bleu: Dict[str, float]
    register: Dict[str, float]
    cxmi: Dict[str, float]


def point(updates: int, runs: Mapping[str, Mapping[str, Any]], model: str) -> Point:
    """Returns what a number of updates gave, of the seeds that have both models.

    Args:
        updates: how many.
        runs: by model and seed, as manuals_small_budget keeps them.
        model: beside the sentence-level one.
    """
    seeds = seeds_beside_baseline(runs, model)

    def means(measure: str, ways: Iterable[str]) -> Dict[str, float]:
        return {way: mean(values(runs, model, seeds, measure, way)) for way in ways}

    def of_baseline(measure: str) -> Dict[str, float]:
        return {BASELINE: mean(values(runs, BASELINE, seeds, measure, "true"))}

    bleu, register = ({**means(measure, WAYS), **of_baseline(measure)} for measure in ("bleu", "register"))
    return Point(updates, len(seeds), bleu, register, means("cxmi", ("true", "shuffled")))


def points_of(results: Path, model: str, pieces: bool) -> List[Point]:
    """Returns all numbers of updates that both models have been trained for, the lowest first.

    Args:
        results: folder of the results.
        model: beside the sentence-level one.
        pieces: translations by pieces of documents, else of whole ones.
    """
    found = []
    for path in results.glob(f"{NAME}_*.json"):
        number = re.match(rf"{NAME}_(\d+)", path.stem)
        if number is None or path.stem != results_name(int(number[1]), pieces):
            continue
        runs = Store(path).runs
        if seeds_beside_baseline(runs, model):
            found.append(point(int(number[1]), runs, model))
    return sorted(found, key=lambda one: one.updates)


def row(found: Point) -> List[str]:
    """Returns a row of the table."""
    bleu, register, cxmi = found.bleu, found.register, found.cxmi
    shown = [f"{register[way]:.1f}" for way in (BASELINE, "true", "shuffled", "none")]
    gains = [f"{bleu[BASELINE]:.2f}", f"{bleu['true']:.2f}", f"{bleu['true'] - bleu[BASELINE]:+.2f}"]
    return [f"{found.updates:,}", str(found.seeds), *gains, *shown, *(f"{value:+.3f}" for value in cxmi.values())]


def figure(points: List[Point], model: str, path: Path) -> None:
    """Draws register, BLEU and CXMI against the updates."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(10, 3.8), layout="constrained")
    FigureCanvasAgg(drawn)
    updates = [one.updates for one in points]
    titles = ("register right, %", "BLEU", "CXMI, nats a sentence")
    for axis, title, measure in zip(drawn.subplots(1, 3), titles, ("register", "bleu", "cxmi")):
        for colour, (way, said) in zip(COLOURS, WAYS.items()):
            values = [getattr(one, measure).get(way) for one in points]
            if None not in values:
                axis.plot(updates, values, "o-", color=colour, label=f"{model}: {said}")
        if measure == "cxmi":
            axis.axhline(0, color="0.3", linestyle="--")
        else:
            values = [getattr(one, measure)[BASELINE] for one in points]
            axis.plot(updates, values, "o--", color="0.3", label="sentence-level")
        axis.set(title=title, xlabel="updates after the start", xticks=updates)
    drawn.legend(*drawn.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    drawn.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="conditional", help="beside the sentence-level one (default: conditional)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder that is read and written to")
    parser.add_argument("--pieces", action="store_true", help="translated by pieces of documents, not whole ones")
    args = parser.parse_args()
    points = points_of(args.results, args.model, args.pieces)
    if not points:
        names = f"{NAME}_*{'_pieces' * args.pieces}.json"
        parser.error(f"{args.results}: no {names} has {args.model}; train it with manuals_small_budget")
    figure(points, args.model, args.results / "manuals_by_updates.png")
    lines = [f"# What {args.model} makes of its context, by updates", "", table(HEADER, [row(one) for one in points])]
    reading = f"{READING}\n{PIECES if args.pieces else WHOLE}"
    lines += ["", "![By updates](manuals_by_updates.png)", "", reading, "", f"`{call(None)}`"]
    write("manuals_by_updates.md", "\n".join(lines), args.results)


if __name__ == "__main__":
    main()

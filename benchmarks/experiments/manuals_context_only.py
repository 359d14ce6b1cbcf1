"""Context on top of a finished sentence-level model: trained alone, beside low-rank updates, or with everything.

    python -m benchmarks.experiments.manuals_small_budget --raw FOLDER --updates 4000 --seeds 3 --models sentence
    python -m benchmarks.experiments.manuals_context_only --raw FOLDER --finished 4000 --updates 2000 --seed 3 \\
        [--models conditional-frozen ...]

All models begin as the small budget's sentence-level one after all of its updates and are trained for --updates more,
in which the learning rate falls to zero again. Run again, it goes on where it was; the report is written after every
model. Writes benchmarks/results/manuals_context_only.md and .json.
"""

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Optional

from benchmarks.experiments import manuals_small_budget as small_budget
from benchmarks.lib import recipe_figures
from benchmarks.lib.machine import RESULTS, ROOT, table
from benchmarks.lib.progress import steps_told
from benchmarks.lib.recipe_figures import BASELINE
from benchmarks.lib.store import Store
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.training import BEST

NAME, CONTEXT = "manuals_context_only", "conditional"
TITLE = "English-German handbooks: context on top of a finished sentence-level model"
FROZEN = ["--freeze-sentence-model"]
WAYS: Dict[str, List[str]] = {
    f"{CONTEXT}-frozen": FROZEN,
    f"{CONTEXT}-lora": [*FROZEN, "--lora-rank", "8", "--lora-alpha", "16", "--lora-on", "q,k,v,out,fc1,fc2"],
}
MODELS = [BASELINE, *WAYS, CONTEXT]
TRAINED = re.compile(r"num\. shared model params: ([\d,]+) \(num\. trained: ([\d,]+)\)")
READING = """\
All models begin as the sentence-level model of [the small budget](manuals_small_budget_{finished}.md) after its
{finished:,} updates ({began}), and are trained for {updates:,} more. `sentence`: all of it goes on; `conditional`: with
conditional attention, everything; `conditional-frozen`: conditional attention alone (`--freeze-sentence-model`);
`conditional-lora`: that, and low-rank updates of rank 8 on all six projections. Documents are translated whole."""

BEGAN = """\
seed {seed}, test: BLEU {bleu:.2f}, {register:.1f} % of the registers right, {together:.1f} % of the documents in one"""


class AfterSentenceLevel(Recipe):
    """A recipe whose models begin as a model that is there already."""

    finished: Path

    def _train_start(self, data: str) -> Optional[Path]:
        return self.finished


def way_of(name: str) -> Model:
    """Conditional attention, trained in one of the :data:`WAYS`."""
    usual = model(CONTEXT)
    return replace(usual, options=lambda updates: [*usual.options(updates), *WAYS[name]])


def trained_parameters(log: Path) -> List[str]:
    """Returns the parameters of a model and how many of them are trained, as its training says first."""
    found = TRAINED.search(log.read_text(encoding="utf-8"))
    assert found, log
    return [found[1], found[2]]


def report(stored: Store, smoke: bool) -> str:
    """The report on all models so far."""
    runs = recipe_figures.by_model(stored, MODELS)
    finished, updates = stored.facts["budget"]
    dataset = replace(small_budget.dataset_of(1, updates), title=TITLE)
    rows = [[name, *of_seeds[0]["parameters"]] for name, of_seeds in runs.items()]
    lines = [recipe_figures.scores_of(dataset, runs, stored, smoke), "", *recipe_figures.losses_of(runs)]
    lines += ["", "## Parameters", "", table(["model", "parameters", "of them trained"], rows)]
    began = "; ".join(BEGAN.format(seed=seed, **scores) for seed, scores in sorted(stored.facts["began"].items()))
    told = READING.format(finished=finished, updates=updates, began=began)
    return "\n".join([*lines, "", told, "", *recipe_figures.made_with(stored)]) + "\n"


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", type=Path, help="the recipe's --raw")
    parser.add_argument(
        "--begin-from", type=Path, default=ROOT / "work" / small_budget.NAME, help="manuals_small_budget's --work"
    )
    parser.add_argument("--finished", type=int, default=4000, help="updates of the model there (default: 4000)")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / NAME, help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="default: all")
    parser.add_argument("--updates", type=int, default=2000, help="of each (default: 2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="made-up text, tiny models: figures mean nothing")
    args = parser.parse_args()

    before = small_budget.folder_of_seed(args.begin_from, args.finished, args.seed)
    finished = before / "models" / f"{BASELINE}-{args.seed}"
    if not (finished / "scores.json").exists():
        parser.error(
            f"{finished}: no sentence-level model that is trained and scored; train it with manuals_small_budget, or "
            "give its --work as --begin-from"
        )
    written, budget = args.results / f"{NAME}.json", [args.finished, args.updates]
    if Store(written).facts.get("budget", budget) != budget:
        parser.error(f"{written}: holds models of other --finished and --updates; give other --results")
    dataset = small_budget.dataset_of(args.seed, args.updates)
    first = Options(before, args.raw, (BASELINE,), (args.seed,), Machine(cpu=True), smoke=args.smoke)
    scores = recipe_figures.figures_of(Recipe(dataset, first), BASELINE, args.seed)["scores"]["test"]
    began = {"bleu": scores["bleu"], "register": scores["metrics"]["register"]["score"]}
    began["together"] = scores["metrics"][small_budget.CONSISTENCY]["score"]
    output = small_budget.folder_of_seed(args.work, args.updates, args.seed)
    for name in args.models:
        names = tuple(dict.fromkeys((BASELINE, name)))
        options = replace(first, output=output, models=names)
        recipe = AfterSentenceLevel(dataset, options, {way: way_of(way) for way in WAYS})
        recipe.finished = finished / BEST
        with alone_in(output), ending_on_signals():
            recipe.run()
        stored = Store(written)
        recipe_figures.remember(stored, recipe)
        stored.facts["budget"] = budget
        stored.facts["began"] = {**stored.facts.get("began", {}), str(args.seed): began}
        for one in names:
            log = output / "models" / f"{one}-{args.seed}" / "train.log"
            figures = recipe_figures.figures_of(recipe, one, args.seed)
            stored.add(f"{one}-{args.seed}", {**figures, "parameters": trained_parameters(log)})
        written.with_suffix(".md").write_text(report(stored, args.smoke), encoding="utf-8")
        print(f"{name}, seed {args.seed}: done", flush=True)


if __name__ == "__main__":
    main()

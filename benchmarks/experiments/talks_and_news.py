"""Talks and news: the handbooks' protocol on a small corpus in which context decides little.

    python -m benchmarks.experiments.talks_and_news --raw FOLDER [--models conditional ...] [--seed 1]

It is the recipe in talks_and_news.yaml. Run again, it goes on where it was; the report is written after every model and
keeps the figures of models whose folders are gone. Writes benchmarks/results/talks_and_news.md and .json.
"""

import argparse
from pathlib import Path

from benchmarks.lib import recipe_figures
from benchmarks.lib.machine import RESULTS, ROOT
from benchmarks.lib.progress import steps_told
from benchmarks.lib.store import Store
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.dataset_file import read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.run import Options, Recipe

NAME = "talks_and_news"
RECIPE = Path(__file__).with_name(f"{NAME}.yaml")
READING = """\
`test` is talks, `news` news commentary; both kinds are in the training text, beside conversations, parliament and news.
Models of one start: a sentence-level one of {start:,} updates of {tokens:,} tokens; then {updates:,} more of every
model, in which the learning rate falls to zero. Trained on pieces of at most 24 sentences, models that see context
translate documents whole."""


def report(stored: Store, dataset: DatasetConfig, smoke: bool) -> str:
    """Returns the report on all models so far."""
    runs = recipe_figures.by_model(stored, dataset.models)
    training = dataset.training
    assert training.start is not None
    numbers = {"start": training.start.updates, "tokens": training.batch_tokens, "updates": training.updates}
    lines = [recipe_figures.scores_of(dataset, runs, stored, smoke), "", *recipe_figures.losses_of(runs), ""]
    lines += [READING.format(**numbers), "", *recipe_figures.made_with(stored)]
    return "\n".join(lines) + "\n"


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    dataset = read_dataset_config(RECIPE)
    parser.add_argument("--raw", type=Path, help="the recipe's --raw")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / NAME, help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--models", nargs="+", choices=dataset.models, default=dataset.models, help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="made-up text, tiny models: figures mean nothing")
    args = parser.parse_args()
    for name in args.models:
        names = tuple(dict.fromkeys((recipe_figures.BASELINE, name)))
        recipe = Recipe(dataset, Options(args.work, args.raw, names, (args.seed,), Machine(cpu=True), smoke=args.smoke))
        with alone_in(args.work), ending_on_signals():
            recipe.run()
        stored = Store(args.results / f"{NAME}.json")
        recipe_figures.remember(stored, recipe)
        for one in names:
            stored.add(f"{one}-{args.seed}", recipe_figures.figures_of(recipe, one, args.seed))
        (args.results / f"{NAME}.md").write_text(report(stored, dataset, args.smoke), encoding="utf-8")
        print(f"{name}, seed {args.seed}: done", flush=True)


if __name__ == "__main__":
    main()

"""Runs a recipe: downloads and prepares a data set, trains models, translates the test sets and tabulates scores.

An interrupted recipe is resumed by the same command; finished steps are skipped. In the output folder,
models/NAME-SEED holds a model, its log, its translation (test.txt) and its scores; table.md is written last.
models/start holds the model that initialises all others, if the recipe has one.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._machine import add_training_arguments, training_settings
from docnmt_fairseq.recipes.dataset import DEFAULT_MODELS, named_recipes, read_dataset_config, recipe_path
from docnmt_fairseq.recipes.recipe import STEPS, Options, Recipe

HELP = "run a data set from download to a table of scores"
QUIET = ("fairseq",)  # its import logs missing optional packages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds recipe, output, models and the options of training."""
    parser.add_argument(
        "recipe", metavar="RECIPE", help=f"data set: {', '.join(named_recipes())}, or the YAML file of another"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="output folder (default: work/NAME, smoke runs work/NAME-smoke)"
    )
    parser.add_argument(
        "--models",
        metavar="NAMES",
        default="",
        help=f"models, with spaces between them (default: the recipe's, otherwise {' '.join(DEFAULT_MODELS)})",
    )
    add_training_arguments(parser)
    parser.add_argument("--stop-after", choices=STEPS, default=STEPS[-1], help="last step to run (default: table)")
    parser.add_argument("--words", action="store_true", help="post-editing: generate words instead of edit operations")


def run(args: argparse.Namespace) -> None:
    """Runs the recipe and prints the table."""
    path = recipe_path(args.recipe)
    kinds = [kind for kind, chosen in (("words", args.words), ("smoke", args.smoke)) if chosen]
    output = args.output or Path("work") / "-".join([path.stem, *kinds])
    options = Options(
        output=output,
        models=tuple(args.models.split()),
        stop_after=args.stop_after,
        words=args.words,
        **training_settings(args),
    )
    table = Recipe(read_dataset_config(path), options).run()
    if table:
        print(f"{table}\n\n{output / 'table.md'}")

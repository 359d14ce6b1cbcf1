"""Runs a recipe: gets a data set, prepares it, trains models on it, translates its test set, and prints their scores.

Run again, it goes on where it was, also after it was killed; finished steps are not repeated. Below the output folder,
models/NAME-SEED holds a model, its log, its translation (test.txt) and its scores; table.md is written last. Where the
recipe has a start, models/start holds the model that all others begin as; where it has probes, models are asked whether
what they gain comes from context.
"""

import argparse
import os
import shlex
from pathlib import Path
from typing import List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DEFAULT_MODELS, named_recipes, read_dataset_config, recipe_path
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.run import STEPS, Options, Recipe
from docnmt_fairseq.recipes.training import Machine

HELP = "a data set's whole way: get, prepare, train, translate, score"
QUIET = ("fairseq",)  # importing it logs what it would like to have installed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the recipe, the output, what to train, and on what."""
    parser.add_argument(
        "recipe", metavar="RECIPE", help=f"the data set: {', '.join(named_recipes())}; or a file of one, as theirs are"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder to write (default: work/NAME, smoke runs work/NAME-smoke)"
    )
    parser.add_argument(
        "--raw", type=Path, metavar="DIR", help="folder with the data set's files or archives; nothing is downloaded"
    )
    parser.add_argument(
        "--models",
        metavar="NAMES",
        default="",
        help=f"models with spaces between (default: the recipe's, else {' '.join(DEFAULT_MODELS)}); a wrong name lists "
        "all",
    )
    parser.add_argument("--seeds", default="1", metavar="NUMBERS", help="each model is trained with each (default: 1)")
    parser.add_argument("--size", metavar="SIZE", help="preset of the architectures (default: the recipe's)")
    parser.add_argument(
        "--updates",
        type=int,
        metavar="N",
        help="updates of each model, those of a start not counted (default: the recipe's)",
    )
    parser.add_argument(
        "--processes", type=int, default=1, metavar="N", help="GPUs, or processes on CPUs, that share each batch"
    )
    parser.add_argument("--cpu", action="store_true", help="no GPU (default where there is none)")
    parser.add_argument(
        "--train-options",
        default="",
        metavar="TEXT",
        help="more options of fairseq-train, e.g. --train-options=--fp16",
    )
    parser.add_argument("--until", choices=STEPS, default=STEPS[-1], help="last step to do (default: all)")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="two minutes on a CPU: a few documents, tiny models; without --raw, of made-up text in native formats",
    )
    parser.add_argument(
        "--words", action="store_true", help="post-editing: models write the post-edited words, not edit operations"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of preparation (default: all available)")


def run(args: argparse.Namespace) -> None:
    """Runs it, and prints the table."""
    if args.updates is not None and args.updates < 1:
        raise InputError(f"--updates {args.updates}: at least 1")
    path = recipe_path(args.recipe)
    dataset = read_dataset_config(path)
    kinds = [kind for kind, chosen in (("words", args.words), ("smoke", args.smoke)) if chosen]
    options = Options(
        output=args.output or Path("work") / "-".join([path.stem, *kinds]),
        raw=args.raw,
        models=tuple(args.models.split()),
        seeds=tuple(_numbers(args.seeds)),
        machine=_machine(args),
        size=args.size,
        updates=args.updates,
        train_options=tuple(shlex.split(args.train_options)),
        until=args.until,
        smoke=args.smoke,
        workers=args.workers or _processors(),
        words=args.words,
    )
    recipe = Recipe(dataset, options)
    with alone_in(options.output), ending_on_signals():
        table = recipe.run()
    if table:
        print(table)
        print(f"\n{options.output / 'table.md'}")


def _machine(args: argparse.Namespace) -> Machine:
    import torch

    if args.processes < 1:
        raise InputError(f"--processes {args.processes}: at least 1")
    cpu = args.cpu or args.smoke or not torch.cuda.is_available()
    if not cpu and args.processes > torch.cuda.device_count():
        raise InputError(f"--processes {args.processes}: there are {torch.cuda.device_count()} GPUs (or give --cpu)")
    return Machine(args.processes, cpu)


def _numbers(text: str) -> List[int]:
    try:
        return [int(number) for number in text.split()]
    except ValueError:
        raise InputError(f"--seeds {text}: expected numbers with spaces between") from None


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

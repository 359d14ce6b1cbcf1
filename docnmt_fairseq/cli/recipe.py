"""Runs a recipe: gets a data set, prepares it, trains models on it, translates its test set, and prints their scores.

Run again, it goes on where it was, also after it was killed; finished steps are not repeated. Below the output folder,
models/NAME-SEED holds a model, its log, its translation (test.txt) and its scores; table.md is written last. Where the
recipe has a start, models/start holds the model that all others begin as; where it has probes, models are asked whether
what they gain comes from context.
"""

import argparse
import contextlib
from pathlib import Path
from typing import Optional

from docnmt_fairseq.cli._machine import (
    add_training_arguments,
    check_updates,
    seeds,
    train_options,
    without_gpu,
    workers,
)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DEFAULT_MODELS
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config, recipe_path
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.node_group import NodeGroup, Rendezvous, run_worker_node
from docnmt_fairseq.recipes.processes import PLUGIN, alone_in, ending_on_signals
from docnmt_fairseq.recipes.run import STEPS, Options, Recipe

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
        "--models",
        metavar="NAMES",
        default="",
        help=f"models with spaces between (default: the recipe's, else {' '.join(DEFAULT_MODELS)}); a wrong name lists "
        "all",
    )
    add_training_arguments(parser)
    parser.add_argument(
        "--nodes",
        type=int,
        default=1,
        metavar="N",
        help="machines that train together: the same command on each, but for --node-rank; all see DIR (default: 1)",
    )
    parser.add_argument(
        "--node-rank",
        type=int,
        metavar="R",
        help="this machine, from 0; others only train with the first",
    )
    parser.add_argument("--rendezvous", metavar="HOST:PORT", help="where they meet: the first machine, and a free port")
    parser.add_argument("--until", choices=STEPS, default=STEPS[-1], help="last step to do (default: all)")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="two minutes on a CPU: a few documents, tiny models; without --raw, of made-up text in native formats",
    )
    parser.add_argument(
        "--words", action="store_true", help="post-editing: models write the post-edited words, not edit operations"
    )


def run(args: argparse.Namespace) -> None:
    """Runs it, and prints the table."""
    check_updates(args)
    cpu = without_gpu(args)
    user_dir = PLUGIN if args.user_dir is None else Path(args.user_dir).absolute()
    rendezvous = _rendezvous(args, cpu)
    with ending_on_signals(), contextlib.ExitStack() as stack:
        if rendezvous and args.node_rank:
            run_worker_node(rendezvous, args.node_rank, user_dir)
            return
        group = stack.enter_context(NodeGroup(rendezvous)) if rendezvous else None
        options = _options(args, Machine(args.processes, cpu, group, user_dir))
        recipe = Recipe(read_dataset_config(recipe_path(args.recipe)), options)
        stack.enter_context(alone_in(options.output))
        table = recipe.run()
    if table:
        print(table)
        print(f"\n{options.output / 'table.md'}")


def _options(args: argparse.Namespace, machine: Machine) -> Options:
    kinds = [kind for kind, chosen in (("words", args.words), ("smoke", args.smoke)) if chosen]
    return Options(
        output=args.output or Path("work") / "-".join([recipe_path(args.recipe).stem, *kinds]),
        raw=args.raw,
        models=tuple(args.models.split()),
        seeds=seeds(args),
        machine=machine,
        size=args.size,
        updates=args.updates,
        train_options=train_options(args),
        until=args.until,
        smoke=args.smoke,
        workers=workers(args),
        words=args.words,
    )


def _rendezvous(args: argparse.Namespace, cpu: bool) -> Optional[Rendezvous]:
    """Where several machines meet; None: there is one."""
    if args.nodes < 1:
        raise InputError(f"--nodes {args.nodes}: at least 1")
    if args.nodes == 1:
        for option, given in (("--node-rank", args.node_rank), ("--rendezvous", args.rendezvous)):
            if given is not None:
                raise InputError(f"{option} {given}: needs --nodes, the number of machines, from 2")
        return None
    if args.node_rank is None or not 0 <= args.node_rank < args.nodes:
        raise InputError(f"--nodes {args.nodes}: needs --node-rank, from 0 (the first machine) to {args.nodes - 1}")
    host, _, port = (args.rendezvous or "").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(
            f"--nodes {args.nodes}: needs --rendezvous HOST:PORT, the name of the first machine and a free port of it"
        )
    return Rendezvous(host, int(port), args.nodes, args.processes, cpu)

"""Runs a published table: data, models, seeds and scores as in the paper, our figures beside the published ones.

Without a table: lists all, with what each needs and takes, and whether it was run. Run again, a table goes on where it
was; tables share the output: data and models that several need are made once. What is not as in the paper is named
below the figures.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._machine import add_training_arguments, check_updates, machine, seeds, train_options, workers
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals

HELP = "a published table: our figures beside the paper's"
QUIET = ("fairseq",)  # importing it logs what it would like to have installed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the table, the output, which cells, and on what."""
    parser.add_argument("table", metavar="TABLE", nargs="?", help="its name (default: lists all)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="folder to write, for all tables (default: work/reproduce, smoke runs work/reproduce-smoke)",
    )
    parser.add_argument("--rows", nargs="+", default=[], metavar="TITLE", help="only these rows (default: all)")
    parser.add_argument("--columns", nargs="+", default=[], metavar="TITLE", help="only these columns (default: all)")
    add_training_arguments(parser)
    parser.add_argument("--smoke", action="store_true", help="made-up data, tiny models, on the CPU")


def run(args: argparse.Namespace) -> None:
    """Prints the list, or runs the table and prints it."""
    from docnmt_fairseq.reproduce.base import Request
    from docnmt_fairseq.reproduce.listing import table_list
    from docnmt_fairseq.reproduce.published import read_table
    from docnmt_fairseq.reproduce.run import reproduce

    check_updates(args)
    request = Request(
        output=args.output or Path("work") / ("reproduce-smoke" if args.smoke else "reproduce"),
        raw=args.raw,
        seeds=seeds(args),
        machine=machine(args),
        size=args.size,
        updates=args.updates,
        train_options=train_options(args),
        smoke=args.smoke,
        workers=workers(args),
    )
    if args.table is None:
        print(table_list(request))
        return
    table = read_table(args.table)
    with alone_in(request.output), ending_on_signals():
        text = reproduce(table, request, args.rows, args.columns)
    print(text)
    print(f"\n{request.output / table.name}.md")

"""Runs a published table: data, models, seeds and scores as in the paper, our figures next to the published ones.

Without a table, lists all of them with requirements, estimated hours and state. An interrupted run is resumed by the
same command. Tables share the output folder: data and models that several need are made once. Differences from the
paper are listed below the figures.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._machine import add_training_arguments, training_settings

HELP = "run a table of a paper and compare the figures"
QUIET = ("fairseq",)  # its import logs missing optional packages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds table, output, cells and the options of training."""
    parser.add_argument("table", metavar="TABLE", nargs="?", help="name of the table (default: list all)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="output folder of all tables (default: work/reproduce, smoke runs work/reproduce-smoke)",
    )
    parser.add_argument("--rows", nargs="+", default=[], metavar="TITLE", help="only these rows (default: all)")
    parser.add_argument("--columns", nargs="+", default=[], metavar="TITLE", help="only these columns (default: all)")
    add_training_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints the list, or runs the table and prints it."""
    from docnmt_fairseq.recipes.recipe import Options
    from docnmt_fairseq.reproduce.listing import table_list
    from docnmt_fairseq.reproduce.published import read_table
    from docnmt_fairseq.reproduce.run import reproduce

    output = args.output or Path("work") / ("reproduce-smoke" if args.smoke else "reproduce")
    request = Options(output=output, **training_settings(args))
    if args.table is None:
        print(table_list(request))
        return
    table = read_table(args.table)
    text = reproduce(table, request, args.rows, args.columns)
    print(f"{text}\n\n{output / table.name}.md")

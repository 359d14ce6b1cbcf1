"""The ``docnmt`` command: every other file of this folder is one subcommand.

A subcommand is a module with ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args)``, named as its file.
"""

import argparse
import importlib
import logging
import pkgutil
import sys
from typing import List, Optional

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of ``docnmt`` with one subparser a file of this folder."""
    parser = argparse.ArgumentParser(prog="docnmt", description="Document-level machine translation with fairseq.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        name = module_info.name.replace("_", "-")
        subparser = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one subcommand; bad input ends with exit status 2 and one line on standard error."""
    args = build_parser().parse_args(argv)
    logging.basicConfig(format="%(asctime)s | %(message)s", datefmt="%H:%M:%S", level=logging.INFO, stream=sys.stderr)
    try:
        args.run(args)
    except InputError as error:
        print(f"docnmt {args.command}: error: {error}", file=sys.stderr)
        return 2
    return 0

"""The ``docnmt`` command: every other file of this folder is one subcommand, but for ``_….py``.

A subcommand is a module with ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args)``, named as its file; what
``run`` gives back is the exit status, None stands for 0. ``args.arguments`` is the command line as it was given. A
module may have ``QUIET``: loggers of which only warnings are shown while it runs.
"""

import argparse
import importlib
import logging
import pkgutil
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from docnmt_fairseq import __version__
from docnmt_fairseq.cli._ending import interruption_told, written_output
from docnmt_fairseq.cli._files import Parser, check_output
from docnmt_fairseq.cli._user_dir import USER_DIR, import_leading_user_dir
from docnmt_fairseq.errors import InputError

# Importing fairseq would log which packages it would like to have for tasks that nobody asked for.
QUIET = ("fairseq.tasks.text_to_speech",)


def command_modules() -> Dict[str, ModuleType]:
    """The subcommands' modules by the names of the subcommands; files ``_….py`` are what several of them share."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}") for name in names}


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``docnmt`` with its subcommands."""
    parser = Parser(prog="docnmt", description="Document-level machine translation with fairseq.")
    parser.add_argument("--user-dir", metavar="DIR", help=USER_DIR)
    parser.add_argument("--version", action="version", version=f"docnmt_fairseq {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in command_modules().items():
        subparser = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run, quiet=(*QUIET, *getattr(module, "QUIET", ())))
    return parser


def split_pairs(pairs: Iterable[Tuple[str, str]]) -> Dict[str, str]:
    """Name → value of options that are given as NAME=VALUE.

    Args:
        pairs: each option's name and what was given.

    Raises:
        InputError: one is incomplete, or a name comes twice.
    """
    found: Dict[str, str] = {}
    for option, pair in pairs:
        name, _, value = pair.partition("=")
        if not name or not value:
            raise InputError(f"{option} {pair}: expected NAME=VALUE")
        if name in found:
            raise InputError(f"{option} {pair}: the name '{name}' comes twice")
        found[name] = value
    return found


@contextmanager
def only_warnings(loggers: Iterable[str]) -> Iterator[None]:
    """Inside the block, loggers tell warnings and what is worse; after it, what they told before."""
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in loggers}
    for logger in levels:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


@interruption_told("docnmt")
def main(argv: Optional[List[str]] = None) -> int:
    """Runs one subcommand; bad input, or a file that the system refuses, ends with exit status 2 and one line."""
    argv = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(format="%(asctime)s | %(message)s", datefmt="%H:%M:%S", level=logging.INFO, stream=sys.stderr)
    try:
        with only_warnings(QUIET):
            import_leading_user_dir(argv)
    except InputError as error:
        print(f"docnmt: error: {error}", file=sys.stderr)
        return 2
    args, unknown = build_parser().parse_known_args(argv)
    if unknown:  # argparse would show the usage of docnmt, not that of the command
        remedy = f"docnmt {args.command} --help has what there is"
        print(f"docnmt {args.command}: error: unrecognized arguments: {' '.join(unknown)}; {remedy}", file=sys.stderr)
        return 2
    args.arguments = argv
    try:
        with only_warnings(args.quiet), written_output():
            check_output(args)
            return args.run(args) or 0
    except (InputError, OSError) as error:
        print(f"docnmt {args.command}: error: {_told(error)}", file=sys.stderr)
        return 2


def _told(error: Exception) -> str:
    """What is wrong, also where the system refuses a file without that anybody expected it: no permission, say.

    Raises:
        OSError: of no file; whoever gets it is to see where it comes from.
    """
    if not isinstance(error, OSError):
        return str(error)
    if error.filename is None:
        raise error
    return f"{error.filename}: {error.strerror}; see to it that it can be read, or written, by who runs this"

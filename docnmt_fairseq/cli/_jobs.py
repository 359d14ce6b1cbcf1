"""The options of commands that share their work out: the engine, and what it is told."""

import argparse
import os
from dataclasses import fields
from typing import Any, Callable, Dict, List, Sequence, Tuple

from docnmt_fairseq.cli._options import add_options_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import ENGINES, Engine
from docnmt_fairseq.options import flag_of

DEFAULT = "processes"


def add_engine_arguments(parser: argparse.ArgumentParser, workers: bool = True) -> None:
    """Adds what :func:`engine_of` reads.

    Args:
        parser: of the command.
        workers: also --workers; False: the command has one of its own.
    """
    group = parser.add_argument_group("engine", "what runs the parts of the work")
    kinds = "; ".join(f"{name}: {ENGINES[name].help}" for name in ENGINES.names())
    group.add_argument("--engine", choices=ENGINES.names(), help=f"{kinds} (default: {DEFAULT})")
    if workers:
        group.add_argument("--workers", type=int, metavar="N", help="parts at once (default: what the machines take)")
    group.add_argument(
        "--tries", type=int, default=3, metavar="N", help="how often a part is tried that fails (default: 3)"
    )
    add_options_of(group, ENGINES, unset=True)


def engine_options() -> Dict[str, Any]:
    """The names of all options of engines, each with its field."""
    return {known.name: known for name in ENGINES.names() for known in fields(ENGINES[name].Options)}


def engine_of(args: argparse.Namespace) -> Engine:
    """The engine.

    Raises:
        InputError: an option that it does not have, or one out of range.
    """
    name = args.engine or DEFAULT
    cls = ENGINES[name]
    own = {known.name for known in fields(cls.Options)}
    given = {option: getattr(args, option) for option in engine_options() if getattr(args, option) is not None}
    for option in given:
        if option not in own:
            raise InputError(f"{flag_of(option)}: not with --engine {name}")
    if args.tries < 1:
        raise InputError(f"--tries {args.tries}: at least 1")
    return cls(cls.Options(**given), args.workers)


def user_dir_of(args: argparse.Namespace) -> Tuple[str, ...]:
    """What stands before the subcommand of a part, so that it imports what this command has imported."""
    return () if args.user_dir is None else ("--user-dir", os.path.abspath(args.user_dir))


def refuse_engine_options(
    args: argparse.Namespace, needs: str = "--engine", also: Sequence[str] = ("workers",)
) -> None:
    """Refuses what only an engine can be told, where there is none.

    Args:
        args: the options.
        needs: what is to be given with them.
        also: further options.

    Raises:
        InputError: something was.
    """
    for option in (*also, *engine_options()):
        if getattr(args, option) is not None:
            raise InputError(f"{flag_of(option)}: needs {needs}")


def arguments_without(args: argparse.Namespace, add: Callable[[argparse.ArgumentParser], object]) -> List[str]:
    """What was given to the subcommand, without some of its options.

    Args:
        args: the parsed command line.
        add: adds those options to a parser, as to that of the subcommand.
    """
    parser = argparse.ArgumentParser(add_help=False)
    add(parser)
    leading = args.arguments[0].startswith("-") and "=" not in args.arguments[0]  # --user-dir, and its folder
    position = args.arguments.index(args.command, 2 if leading else 0)
    return parser.parse_known_args(args.arguments[position + 1 :])[1]

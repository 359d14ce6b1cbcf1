"""The ``docnmt`` command: every file of this folder is one subcommand, except ``_….py``.

A subcommand is a module with ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args)``, which returns the exit
status or None for 0. ``args.arguments`` is the command line as given. Messages below warnings of the loggers ``QUIET``
are hidden.
"""

import argparse
import importlib
import io
import logging
import os
import pkgutil
import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq import __version__, load_plugins
from docnmt_fairseq.errors import InputError

USER_DIR = "custom package to import before COMMAND, which can then use everything that it registers"
QUIET = ("fairseq.tasks.text_to_speech",)  # reports missing optional packages when fairseq is imported


def command_modules() -> Dict[str, ModuleType]:
    """Modules of the subcommands by name."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}") for name in names}


def build_parser() -> argparse.ArgumentParser:
    """Parser of ``docnmt`` with its subcommands."""
    parser = argparse.ArgumentParser(prog="docnmt", description="Document-level machine translation with fairseq.")
    parser.add_argument("--user-dir", metavar="DIR", help=USER_DIR)
    parser.add_argument("--version", action="version", version=f"docnmt_fairseq {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in command_modules().items():
        subparser = commands.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(subparser)
        log = subparser.add_argument_group("log").add_mutually_exclusive_group()
        log.add_argument("-q", "--quiet", action="store_true", help="log warnings and errors only")
        log.add_argument("-v", "--verbose", action="store_true", help="log messages of libraries, too")
        subparser.set_defaults(run=module.run, hidden=(*QUIET, *getattr(module, "QUIET", ())))
    return parser


def split_pairs(pairs: Iterable[Tuple[str, str]]) -> Dict[str, str]:
    """Values by name of options that are given as NAME=VALUE.

    Args:
        pairs: flag and value of each option.

    Raises:
        InputError: a value is incomplete, or a name is repeated.
    """
    found: Dict[str, str] = {}
    for option, pair in pairs:
        name, _, value = pair.partition("=")
        if not value or name in found:
            raise InputError(f"{option} {pair}: expected NAME=VALUE, and each name only once")
        found[name] = value
    return found


def check_output(args: argparse.Namespace) -> None:
    """Refuses an output file that is also an input file of the command.

    Raises:
        InputError: names the input.
    """
    output = getattr(args, "output", None)
    if output is None or not os.path.isfile(output):
        return
    for name, value in vars(args).items():
        for path in () if name in ("output", "arguments") else _files(value):
            if path.is_file() and path.samefile(output):
                raise InputError(f"--output {output}: is also the input {path}; give another file")


def _files(value: object) -> Iterator[Path]:
    """Files in the value of an option: a path, NAME=FILE, or several of them."""
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _files(one)
    elif isinstance(value, Path):
        yield value
    elif isinstance(value, str) and "=" in value:
        yield Path(value.partition("=")[2])


@contextmanager
def only_warnings(loggers: Iterable[str]) -> Iterator[None]:
    """Hides messages below warnings inside the block."""
    levels = {logging.getLogger(name): logging.getLogger(name).level for name in loggers}
    for logger in levels:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def import_user_dir(argv: Sequence[str]) -> None:
    """Imports the package of a leading ``--user-dir`` as fairseq's commands do."""
    leading = argparse.ArgumentParser(add_help=False)  # allows abbreviations, as the parser of the command does
    leading.add_argument("--user-dir")
    leading.add_argument("rest", nargs=argparse.REMAINDER)
    folder = leading.parse_known_args(argv)[0].user_dir
    if folder is not None:
        from fairseq.utils import import_user_module

        import_user_module(SimpleNamespace(user_dir=folder))


def close_progress_bars() -> None:
    """Ends the lines of progress bars that an error interrupted."""
    if "tqdm" in sys.modules:
        for bar in list(sys.modules["tqdm"].tqdm._instances):
            bar.close()


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one subcommand.

    Input errors, errors of the system and of imports end with status 2 and one line. Ctrl-C prints one line
    instead of a traceback; the process still ends by the signal.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(format="%(asctime)s | %(message)s", datefmt="%H:%M:%S", level=logging.INFO, stream=sys.stderr)
    program = "docnmt"
    try:
        with only_warnings(QUIET):
            load_plugins()
            import_user_dir(argv)
        args = build_parser().parse_args(argv)
        program = f"docnmt {args.command}"
        args.arguments = argv
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
            sys.stdout.reconfigure(errors="surrogateescape")  # names of files that are not UTF-8
        with only_warnings([""] if args.quiet else [] if args.verbose else args.hidden):
            check_output(args)
            return args.run(args) or 0
    except (InputError, OSError, ImportError) as error:
        close_progress_bars()
        print(f"{program}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("docnmt: interrupted", file=sys.stderr)
        sys.excepthook = lambda *_: None
        raise

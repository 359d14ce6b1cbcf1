"""``docnmt --user-dir DIR COMMAND``: a custom package that is imported before the command is parsed."""

import argparse
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Sequence

from docnmt_fairseq.errors import InputError

USER_DIR = "custom package to import before COMMAND, which can then use everything that it registers"


def import_leading_user_dir(argv: Sequence[str]) -> None:
    """Imports the package of ``--user-dir`` before the subcommand.

    Raises:
        InputError: see :func:`import_user_dir`.
    """
    leading = argparse.ArgumentParser(add_help=False)  # allows abbreviations, as the parser of the command does
    leading.add_argument("--user-dir")
    leading.add_argument("rest", nargs=argparse.REMAINDER)
    given, _ = leading.parse_known_args(argv)
    if given.user_dir is not None:
        import_user_dir(given.user_dir)


def import_user_dir(folder: str) -> None:
    """Imports a package as fairseq's commands do, unless it is imported already.

    Raises:
        InputError: there is no such package, or its name is taken.
    """
    path = Path(os.path.abspath(folder))
    if not (path / "__init__.py").is_file():
        raise InputError(f"--user-dir {folder}: not a package; give a folder with an __init__.py")
    other = sys.modules.get(path.name)
    if "." in path.name or (other is not None and str(path) not in getattr(other, "__path__", ())):
        raise InputError(f"--user-dir {folder}: the name {path.name} is invalid or taken; rename the folder")
    from fairseq.utils import import_user_module

    import_user_module(SimpleNamespace(user_dir=str(path)))

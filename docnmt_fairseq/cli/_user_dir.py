"""``docnmt --user-dir DIR COMMAND``: a package of one's own, imported first, as by fairseq's commands."""

import argparse
from pathlib import Path
from typing import Sequence

from docnmt_fairseq.errors import InputError

USER_DIR = "a package of yours that is imported first, before COMMAND: the command knows what it registers"


def import_user_dir(argv: Sequence[str]) -> None:
    """Imports what ``--user-dir`` before the subcommand names; the parser is made afterwards, with its options.

    Raises:
        InputError: it is not there.
    """
    leading = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    leading.add_argument("--user-dir")
    leading.add_argument("rest", nargs=argparse.REMAINDER)  # a subcommand may have such an option of its own
    given, _ = leading.parse_known_args(argv)
    if given.user_dir is None:
        return
    if not Path(given.user_dir).is_dir():
        raise InputError(f"--user-dir {given.user_dir}: no such folder; give that of a package of yours")
    from fairseq.utils import import_user_module

    import_user_module(given)

"""``docnmt --user-dir DIR COMMAND``: a package of one's own, imported first, as by fairseq's commands."""

import argparse
from typing import Sequence

from docnmt_fairseq.user_dir import import_user_dir

USER_DIR = "a package of yours that is imported first, before COMMAND: the command knows what it registers"


def import_leading_user_dir(argv: Sequence[str]) -> None:
    """Imports what ``--user-dir`` before the subcommand names; the parser is made afterwards, with its options.

    Raises:
        InputError: it is no package that can be imported.
    """
    leading = argparse.ArgumentParser(add_help=False)  # takes abbreviations, as that of the command does
    leading.add_argument("--user-dir")
    leading.add_argument("rest", nargs=argparse.REMAINDER)  # a subcommand may have such an option of its own
    given, _ = leading.parse_known_args(argv)
    if given.user_dir is not None:
        import_user_dir(given.user_dir)

"""Options of commands that read several translations of a test set."""

import argparse
from pathlib import Path
from typing import Callable, Dict, Tuple

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.evaluation.texts import ON_EMPTY, References, Stream, read_log, read_text

TEXTS = "delimited text: a sentence a line, an empty line ends a document"


def add_text_arguments(group: argparse._ArgumentGroup) -> None:
    """Adds references, systems and source."""
    group.add_argument(
        "--reference", required=True, nargs="+", type=Path, metavar="FILE", help="references, marks on the same lines"
    )
    for option, what in (
        ("--system", "name to show and a translation with the reference's marks; once for each system"),
        ("--log", "the same, but the output of fairseq-generate; ids are line numbers of the reference, from 0"),
    ):
        group.add_argument(option, dest="systems", action="append", type=_named(option), metavar="NAME=FILE", help=what)
    group.add_argument("--source", type=Path, metavar="FILE", help="source, for metrics that read it, and to be shown")
    group.add_argument(
        "--on-empty",
        choices=ON_EMPTY,
        default=ON_EMPTY[0],
        help="an empty line of a translation where the reference has a sentence: an error (default), or an empty "
        "translation to score; logs may always hold such",
    )


def _named(option: str) -> Callable[[str], Tuple[str, str]]:
    return lambda pair: (option, pair)


def read_systems(args: argparse.Namespace, references: References) -> Dict[str, Stream]:
    """The translations by name, in the order in which they were given.

    Args:
        args: with the options above.
        references: of their test set.

    Raises:
        InputError: one is no translation of the test set; a name twice.
    """
    names = split_pairs(args.systems)
    return {
        name: read_log(Path(file), references) if kind == "--log" else read_text(Path(file), references, args.on_empty)
        for (kind, _), (name, file) in zip(args.systems, names.items())
    }

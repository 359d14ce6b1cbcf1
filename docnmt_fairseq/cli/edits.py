"""Automatic post-editing: edit operations from translations and their post-edits (make), and the inverse (apply).

Texts are lines of tokens separated by spaces. An operation is a token: <keep>, <delete>, or a word to insert.
Operations beyond the end of the translation are ignored, and tokens that no operation reaches are kept. docnmt prepare
--edits-of makes the operations of a corpus, and docnmt postprocess applies those of a model.
"""

import argparse
from pathlib import Path
from typing import Iterable, Tuple

from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.edits import edited_line, operations_line
from docnmt_fairseq.corpus.files import atomic_files, read_lines
from docnmt_fairseq.files import refuse_streams

HELP = "post-edited text to edit operations, and back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds both directions with their files."""
    actions = parser.add_subparsers(dest="action", metavar="make|apply", required=True)
    make = actions.add_parser("make", help="translations and post-edits to operations")
    make.add_argument("--edited", required=True, type=Path, metavar="FILE", help="post-edited translations")
    apply = actions.add_parser("apply", help="translations and operations to post-edited text")
    operations = apply.add_mutually_exclusive_group(required=True)
    operations.add_argument("--operations", type=Path, metavar="FILE", help="operations, aligned with the translations")
    operations.add_argument(
        "--log", type=Path, metavar="FILE", help="output of fairseq-generate for the translations, without --remove-bpe"
    )
    for action in (make, apply):
        action.add_argument(
            "--translation",
            required=True,
            type=Path,
            metavar="FILE",
            help="machine translations, one per line",
        )
        action.add_argument("--output", required=True, type=Path, metavar="FILE", help="output file")


def run(args: argparse.Namespace) -> None:
    """Writes the output and prints its path."""
    from docnmt_fairseq.evaluation.texts import restore_document_order

    pairs: Iterable[Tuple[str, ...]]
    if args.action == "apply" and args.log:
        refuse_streams(args.translation)  # read twice
        pairs = zip(read_lines(args.translation), restore_document_order(args.log, args.translation))
    else:
        other = args.edited if args.action == "make" else args.operations
        pairs = (texts for _, texts in parallel_lines([args.translation, other]))
    function = operations_line if args.action == "make" else edited_line
    with atomic_files(args.output) as (stream,):
        stream.writelines(f"{function(*texts)}\n" for texts in pairs)
    print(args.output)

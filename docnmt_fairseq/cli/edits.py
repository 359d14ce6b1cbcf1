"""Automatic post-editing: edit operations from translations and their post-edits (make), and the way back (apply).

Texts are line by line, tokens with spaces between. An operation is a token: <keep>, <delete>, or a word to insert. Any
line of operations can be applied: those beyond the end of the translation do nothing, and what none reaches is kept.
docnmt prepare --edits-of makes operations of a corpus as one of its steps, and docnmt postprocess applies a model's.
"""

import argparse
from pathlib import Path
from typing import Iterable, Tuple

HELP = "post-edited text to edit operations, and back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the two directions with their files."""
    actions = parser.add_subparsers(dest="action", metavar="make|apply", required=True)
    make = actions.add_parser("make", help="translations and post-edits to operations")
    make.add_argument("--edited", required=True, type=Path, metavar="FILE", help="the post-edited translations")
    apply = actions.add_parser("apply", help="translations and operations to post-edited text")
    operations = apply.add_mutually_exclusive_group(required=True)
    operations.add_argument("--operations", type=Path, metavar="FILE", help="a line for each line of the translations")
    operations.add_argument(
        "--log", type=Path, metavar="FILE", help="the same, as fairseq-generate printed them, without --remove-bpe"
    )
    for action in (make, apply):
        action.add_argument(
            "--translation", required=True, type=Path, metavar="FILE", help="machine translations, a sentence a line"
        )
        action.add_argument("--output", required=True, type=Path, metavar="FILE", help="file to write")


def run(args: argparse.Namespace) -> None:
    """Writes the output, and prints its path."""
    from docnmt_fairseq.corpus.delimited import parallel_lines
    from docnmt_fairseq.corpus.edits import edited_line, write_operations
    from docnmt_fairseq.corpus.files import atomic_files, read_lines, refuse_streams
    from docnmt_fairseq.evaluation.generate_log import restore_document_order

    if args.action == "make":
        write_operations(args.translation, args.edited, args.output)
    else:
        pairs: Iterable[Tuple[str, ...]]
        if args.log:
            refuse_streams(args.translation)  # for the order, and for the words
            pairs = zip(read_lines(args.translation), restore_document_order(args.log, args.translation))
        else:
            pairs = (texts for _, texts in parallel_lines([args.translation, args.operations]))
        with atomic_files(args.output) as (stream,):
            stream.writelines(f"{edited_line(*texts)}\n" for texts in pairs)
    print(args.output)

"""Writes one HTML file about a checkpoint and a document: which context every word used, and how well that went.

The document is translated and computed again with its translation, while the mechanisms report what they select and
weigh. The file needs nothing beside it: no network, no other file.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._options import add_view_arguments, given, write_text
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.view import DocumentView

HELP = "an HTML file about a checkpoint and a document: what context each word used"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the document, and what else the file is to show."""
    parser.add_argument(
        "--path", required=True, type=Path, metavar="FILE", help="checkpoint of a document_transformer or document_rnn"
    )
    parser.add_argument(
        "--data", required=True, type=Path, metavar="DIR", help="data-bin, or the folder that docnmt prepare wrote"
    )
    parser.add_argument("--split", metavar="NAME", help="split that has the document (default: test)")
    parser.add_argument("--document", type=int, default=1, metavar="N", help="which of its documents (default: 1)")
    parser.add_argument(
        "--input", type=Path, metavar="FILE", help="take the document from delimited text instead of the data-bin"
    )
    parser.add_argument(
        "--tokenized",
        action="store_true",
        help="text of --input and --scat is tokens already (without the folder of docnmt prepare it is, anyway)",
    )
    parser.add_argument("--beam", type=int, default=4, metavar="N", help="of the search (default: 4)")
    parser.add_argument(
        "--results",
        default=[],
        action="append",
        type=Path,
        metavar="FILE",
        help="JSON of docnmt score-synth or docnmt score, to be shown as tables and charts; may be repeated",
    )
    parser.add_argument(
        "--scat",
        type=Path,
        metavar="PREFIX",
        help="PREFIX.LANG and PREFIX.context.LANG of SCAT, in both languages: agreement with highlighted words",
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="what fairseq-train printed, for training curves")
    parser.add_argument(
        "--source-weights", type=Path, metavar="FILE", help="write a picture, too (PNG): the weights of several sources"
    )
    parser.add_argument(
        "--sentence", type=int, metavar="N", help="of the document, for --source-weights (default: the first three)"
    )
    add_view_arguments(parser)
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="HTML file to write")


def run(args: argparse.Namespace) -> None:
    """Writes the file, and perhaps a picture, and prints their names."""
    from docnmt_fairseq.report.build import ReportOptions, build_page

    if args.input is not None and args.split is not None:
        raise InputError(
            f"--split {args.split}: the document is taken from --input {args.input}; leave one of them out"
        )
    if args.tokenized and args.input is None and args.scat is None:
        raise InputError("--tokenized: is of the text of --input and --scat; give one of them, or leave it out")
    options = ReportOptions(**given(args, ReportOptions), view=DocumentView(**given(args, DocumentView)))
    write_text(args.output, build_page(options).to_html())
    print(args.output)
    if args.source_weights is not None:
        print(args.source_weights)

"""Writes a self-contained HTML file about a checkpoint and a document: the context that each word used.

The document is translated and computed again with its translation, while the selections and weights of the context
mechanisms are captured.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._options import add_view_arguments, given, write_text
from docnmt_fairseq.translate.view import DocumentView

HELP = "HTML file about a checkpoint and a document: the context that each word used"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the document and further sections."""
    parser.add_argument(
        "--path", required=True, type=Path, metavar="FILE", help="checkpoint of a document_transformer or document_rnn"
    )
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="data-bin, or output of docnmt prepare")
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument("--split", metavar="NAME", help="split with the document (default: test)")
    texts.add_argument("--input", type=Path, metavar="FILE", help="delimited text with the document")
    parser.add_argument("--document", type=int, default=1, metavar="N", help="number of the document (default: 1)")
    parser.add_argument(
        "--tokenized",
        action="store_true",
        help="text of --input and --scat is tokenised (always so without output of docnmt prepare)",
    )
    parser.add_argument("--beam", type=int, default=4, metavar="N", help="beam size (default: 4)")
    parser.add_argument(
        "--results",
        default=[],
        action="append",
        type=Path,
        metavar="FILE",
        help="JSON output of docnmt score, for tables and charts; may be repeated",
    )
    parser.add_argument(
        "--scat",
        type=Path,
        metavar="PREFIX",
        help="SCAT: PREFIX.LANG and PREFIX.context.LANG of both languages, for agreement with highlighted words",
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="output of fairseq-train, for training curves")
    parser.add_argument(
        "--source-weights", type=Path, metavar="FILE", help="also draw the weights of several sources (PNG)"
    )
    parser.add_argument(
        "--sentence", type=int, metavar="N", help="sentence of --source-weights (default: the first three)"
    )
    add_view_arguments(parser)
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="HTML file to write")


def run(args: argparse.Namespace) -> None:
    """Writes the file, and optionally a picture, and prints their names."""
    from docnmt_fairseq.report.build import ReportOptions, build_page

    options = ReportOptions(**given(args, ReportOptions), view=DocumentView(**given(args, DocumentView)))
    write_text(args.output, build_page(options).to_html())
    print(args.output)
    if args.source_weights is not None:
        print(args.source_weights)

"""Writes a self-contained HTML file about a checkpoint and a document: the context that each word used.

The document is translated and computed again with its translation, while the selections and weights of the context
mechanisms are captured.
"""

import argparse
from dataclasses import fields
from pathlib import Path

from docnmt_fairseq.cli._options import add_fields, add_view_arguments, given, write_text
from docnmt_fairseq.options import options_of
from docnmt_fairseq.report import ReportOptions
from docnmt_fairseq.translate.view import DocumentView

HELP = "HTML file about a checkpoint and a document: the context that each word used"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the document and further sections."""
    names = [known.name for known in fields(ReportOptions)]
    add_fields(parser, ReportOptions, names[:2])
    add_fields(parser.add_mutually_exclusive_group(), ReportOptions, names[2:4])  # split and input
    add_fields(parser, ReportOptions, names[4:])
    add_view_arguments(parser)
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="HTML file to write")


def run(args: argparse.Namespace) -> None:
    """Writes the file, and optionally a picture, and prints their names."""
    from docnmt_fairseq.report.build import build_page

    page = build_page(options_of(args, ReportOptions), DocumentView(**given(args, DocumentView)))
    write_text(args.output, page.to_html())
    print(args.output)
    if args.source_weights is not None:
        print(args.source_weights)

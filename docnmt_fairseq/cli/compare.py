"""Shows sentences that systems translate differently, side by side, with source, reference and the sentences before.

By each stands the difference that it makes to a metric of single sentences, of the last system against the first.
"""

import argparse

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.cli._options import add_output_arguments, write_report
from docnmt_fairseq.cli._systems import TEXTS, add_text_arguments, read_systems
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.examples import ORDERS, as_markdown, as_text, find_examples
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.bleu import SentenceBleu
from docnmt_fairseq.evaluation.texts import read_references

HELP = "sentences that systems translate differently, side by side with their context"
BY = ("chrf", "bleu", "ter")  # metrics of sacreBLEU that score a sentence, too


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the texts, which sentences to show, and the output."""
    add_text_arguments(parser.add_argument_group("texts", TEXTS))
    parser.add_argument(
        "--context", type=int, default=3, metavar="N", help="sentences before each, of its document (default: 3)"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=ORDERS[0],
        help="as they stand (default), or the largest gain, or loss, of the last system over the first one first",
    )
    parser.add_argument("--by", choices=BY, default=BY[0], help=f"metric of gains and losses (default: {BY[0]})")
    parser.add_argument(
        "--lines",
        type=int,
        nargs="+",
        default=[],
        metavar="LINE",
        help="these lines of the reference, from 1, alike or not",
    )
    parser.add_argument("--most", type=int, metavar="N", help="show so many (default: all)")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints or writes the examples."""
    if args.context < 0:
        raise InputError(f"--context {args.context}: at least 0")
    if args.most is not None and args.most < 1:
        raise InputError(f"--most {args.most}: at least 1")
    if len(split_pairs(args.systems or [])) < 2:
        raise InputError("nothing to compare: give at least two of --system NAME=FILE or --log NAME=FILE")
    references = read_references(args.reference, args.source)
    systems = read_systems(args, references)
    kind = SentenceBleu if args.by == "bleu" else METRICS[args.by]
    metric = kind(references, kind.Options())
    found = find_examples(references, systems, metric, args.context, args.order, args.lines, args.most)
    write_report(args, found, as_text, as_markdown)

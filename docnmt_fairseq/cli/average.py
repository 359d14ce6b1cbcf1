"""Averages checkpoints of one training into one, which often translates better than each of them."""

import argparse
from pathlib import Path

from docnmt_fairseq.cli import check_output
from docnmt_fairseq.errors import InputError

HELP = "average the parameters of several checkpoints of a training"
QUIET = ("fairseq",)
EXAMPLES = """examples:
  docnmt average work/document --last 5 --output work/document/average.pt
  docnmt average work/document/checkpoint_4_9000.pt work/document/checkpoint_4_9500.pt --output average.pt"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds checkpoints and output."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="CHECKPOINT",
        help="checkpoints of one training; with --last its --save-dir",
    )
    parser.add_argument("--last", type=int, metavar="N", help="average the last N checkpoints of a folder")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="output checkpoint")
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def run(args: argparse.Namespace) -> None:
    """Averages the checkpoints and prints their names."""
    from docnmt_fairseq.hub.average import average, last_checkpoints

    if args.last is not None:
        args.paths = [path for folder in args.paths for path in last_checkpoints(folder, args.last)]
        check_output(args)
    if args.output.exists() and not args.force:
        raise InputError(f"--output {args.output}: exists; use --force to replace it")
    average(args.paths, args.output)
    print(f"{args.output}: {len(args.paths)} checkpoints, {' '.join(path.name for path in args.paths)}")

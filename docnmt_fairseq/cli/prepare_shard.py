"""Makes one of the data-bins that docnmt prepare --shards planned.

docnmt prepare does that itself; this is for schedulers of one's own, after docnmt prepare --shards N --fit-only. When
all are there, docnmt prepare with the options of before, without --fit-only, checks them and writes manifest.json.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.corpus.shards import DataBins
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.locks import beside, holding

HELP = "one data-bin of those that docnmt prepare --shards planned"
QUIET = ("fairseq",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="as given to docnmt prepare")
    parser.add_argument("--shard", type=int, required=True, metavar="I", help="which one, from 0")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")


def make_data_bin(bins: DataBins, shard: int) -> None:
    """Makes a data-bin, unless it is there, and the indexes that trainings map into memory.

    Raises:
        InputError: somebody else makes it, too.
    """
    from docnmt_fairseq.data.kept_index import keep_indexes

    path = bins.paths[shard]
    with holding(beside(path), str(path)):
        bins.make(shard)
        keep_indexes(path, bins.stages.config.languages)


def run(args: argparse.Namespace) -> None:
    """Makes it, unless it is there, and prints its path."""
    if args.workers < 1:
        raise InputError(f"--workers {args.workers}: at least 1")
    bins = DataBins.planned(args.output.absolute(), args.workers)
    if args.shard not in range(len(bins.paths)):
        raise InputError(f"--shard {args.shard}: {args.output} has shards 0 to {len(bins.paths) - 1}")
    make_data_bin(bins, args.shard)
    print(bins.paths[args.shard])

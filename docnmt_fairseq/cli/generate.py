"""Runs fairseq-generate as many processes, whose output is that of one.

The batches are those of one process, each translated by one of the jobs, documents whole. Lines S, T, H, D, P (and A,
I, E) come in the order of fairseq-generate, then the score of all. Options of this command come before the data-bin,
all that follows it is fairseq-generate's; --user-dir may be left out, but for a package of yours, which may also stand
before the command.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._jobs import add_engine_arguments, engine_of, user_dir_of
from docnmt_fairseq.errors import InputError

HELP = "fairseq-generate shared out among processes or machines, with the output of one"
QUIET = ("fairseq", "fairseq_cli")
EXAMPLES = """examples:
  docnmt generate --shards 4 work/data-bin --task document_translation --path work/document/checkpoint_best.pt \\
      --beam 4 --remove-bpe sentencepiece --results-path work/results
  docnmt generate --shards 8 --job-gpus 1 work/data-bin --task document_translation \\
      --path work/document/checkpoint_best.pt --beam 4 --remove-bpe sentencepiece --results-path work/results"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the shares, the engine, and what goes to fairseq."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--shards", type=int, required=True, metavar="N", help="how many jobs share the batches")
    parser.add_argument("--shard", type=int, metavar="I", help="only the I-th share, for whom --share is written")
    parser.add_argument("--share", type=Path, metavar="FILE", help="where what comes of that share is written")
    add_engine_arguments(parser)
    parser.add_argument("data", metavar="DATA-BIN", help="what fairseq-generate reads")
    parser.add_argument("options", nargs=argparse.REMAINDER, metavar="...", help="options of fairseq-generate")


def run(args: argparse.Namespace) -> None:
    """Translates, and prints where the output is; or writes one share."""
    if (args.shard is None) != (args.share is None):
        raise InputError("--shard and --share go together")
    arguments = [args.data, *args.options, *user_dir_of(args)]
    if args.shard is not None:
        from docnmt_fairseq.translate.generated_share import write_share
        from docnmt_fairseq.translate.shards import Shard

        return write_share(arguments, Shard(args.shard, args.shards), args.share)
    engine = engine_of(args)
    from docnmt_fairseq.translate.generating import generate

    output = generate(arguments, args.shards, engine, args.tries)
    if not engine.only_prepares:
        print(output)
    return None

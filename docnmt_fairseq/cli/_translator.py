"""Options of commands that translate: model, search, view of documents, hardware."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Optional

from docnmt_fairseq.cli._options import add_view_arguments, given
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator


class Groups(NamedTuple):
    """Groups of options that a command may extend."""

    search: argparse._ArgumentGroup
    view: argparse._ArgumentGroup


def add_translator_arguments(parser: argparse.ArgumentParser, max_tokens: int) -> Groups:
    """Adds the options that :func:`translator_of` reads.

    Args:
        parser: parser of the command.
        max_tokens: default of --max-tokens.
    """
    model = parser.add_argument_group("model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint; several separated by : for ensembles")
    model.add_argument(
        "--data", type=Path, metavar="DIR", help="output of docnmt prepare (default: that of the model's training)"
    )

    search = parser.add_argument_group("search", "as in fairseq-generate")
    search.add_argument("--beam", type=int, metavar="N", help="beam size (default: 5)")
    search.add_argument(
        "--lenpen", type=float, metavar="X", help="length penalty: < 1 prefers shorter, > 1 longer (default: 1)"
    )
    search.add_argument(
        "--max-len-a", type=float, metavar="A", help="maximum length of a translation is A x + B tokens (default: 0)"
    )
    search.add_argument("--max-len-b", type=int, metavar="B", help="for x source tokens (default: 200)")
    search.add_argument("--min-len", type=int, metavar="N", help="minimum length of a translation (default: 1)")
    search.add_argument("--unkpen", type=float, metavar="X", help="penalty of unknown words (default: 0)")
    search.add_argument("--no-repeat-ngram-size", type=int, metavar="N", help="no n-gram of this size occurs twice")
    search.add_argument("--unnormalized", action="store_true", default=None, help="compare sums of log-probabilities")
    search.add_argument("--sampling", action="store_true", default=None, help="sample translations")
    search.add_argument("--sampling-topk", type=int, metavar="N", help="sample from the N most probable tokens")
    search.add_argument(
        "--sampling-topp",
        type=float,
        metavar="P",
        help="nucleus sampling: smallest set of tokens with cumulative probability >= P",
    )
    search.add_argument("--seed", type=int, default=1, metavar="N", help="seed of sampling (default: 1)")
    search.add_argument("--temperature", type=float, metavar="X", help="> 1 flattens the distribution (default: 1)")

    view = add_view_arguments(parser)
    hardware = parser.add_argument_group("hardware")
    hardware.add_argument(
        "--max-tokens",
        type=int,
        default=max_tokens,
        metavar="N",
        help=f"source tokens in a batch (default: {max_tokens})",
    )
    hardware.add_argument("--cpu", action="store_true", help="do not use a GPU")
    precision = hardware.add_mutually_exclusive_group()
    precision.add_argument(
        "--precision",
        choices=("float32", "bf16", "fp16", "int8"),
        help="precision of matrix products: bf16, int8 on CPUs; bf16, fp16 on GPUs (default: float32)",
    )
    precision.add_argument("--fp16", dest="precision", action="store_const", const="fp16", help="--precision fp16")
    return Groups(search, view)


def search_of(args: argparse.Namespace) -> SearchOptions:
    """Returns the search options.

    Raises:
        InputError: an option is out of range.
    """
    if args.max_tokens < 1:
        raise InputError(f"--max-tokens {args.max_tokens}: at least 1")
    return SearchOptions(**given(args, SearchOptions))


def translator_of(args: argparse.Namespace, search: SearchOptions, **view: Optional[str]) -> "DocumentTranslator":
    """Loads the translator.

    Args:
        args: parsed options.
        search: see :func:`search_of`.
        view: view of documents, in addition to the options.

    Raises:
        InputError: files are missing or do not fit together.
    """
    from docnmt_fairseq.translate.translator import DocumentTranslator
    from docnmt_fairseq.translate.view import DocumentView

    return DocumentTranslator.from_checkpoint(
        *args.path.split(":"),
        data=args.data,
        view=DocumentView(**{**given(args, DocumentView), **view}),
        search=search,
        max_tokens=args.max_tokens,
        cpu=args.cpu,
        precision=args.precision,
    )

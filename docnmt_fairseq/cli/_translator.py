"""Options of commands that translate: model, search, view of documents, hardware."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Optional, Tuple

from docnmt_fairseq.cli._options import add_fields, add_view_arguments, given
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator

SEARCH = [known.name for known in fields(SearchOptions) if known.name != "nbest"]


def add_translator_arguments(
    parser: argparse.ArgumentParser, max_tokens: int
) -> Tuple[argparse._ArgumentGroup, argparse._ArgumentGroup]:
    """Adds the options that :func:`translator_of` reads; returns the groups of the search and the view, to extend them.

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
    add_fields(search, SearchOptions, SEARCH, unset=True)
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
    return search, view


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

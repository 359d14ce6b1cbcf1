"""The options of commands that translate: the model, the search, the view of documents, and the machine."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Optional

from docnmt_fairseq.cli._options import add_view_arguments, given
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator


class Groups(NamedTuple):
    """Groups of options, to which a command may add its own."""

    search: argparse._ArgumentGroup
    view: argparse._ArgumentGroup


def add_translator_arguments(parser: argparse.ArgumentParser, max_tokens: int) -> Groups:
    """Adds what :func:`translator_of` reads.

    Args:
        parser: of the command.
        max_tokens: the default of --max-tokens.
    """
    model = parser.add_argument_group("model")
    model.add_argument(
        "--path", required=True, metavar="FILE", help="checkpoint; several with colons between: an ensemble"
    )
    model.add_argument(
        "--data", type=Path, metavar="DIR", help="folder that docnmt prepare wrote (default: the model's own)"
    )

    search = parser.add_argument_group("search", "as of fairseq-generate")
    search.add_argument("--beam", type=int, metavar="N", help="hypotheses (default: 5)")
    search.add_argument("--lenpen", type=float, metavar="X", help="below 1 shorter, above longer (default: 1)")
    search.add_argument(
        "--max-len-a", type=float, metavar="A", help="a translation has at most A x + B tokens (default: 0) ..."
    )
    search.add_argument("--max-len-b", type=int, metavar="B", help="... for x of the source (default: 200)")
    search.add_argument("--min-len", type=int, metavar="N", help="a translation has at least N tokens (default: 1)")
    search.add_argument("--unkpen", type=float, metavar="X", help="above 0: fewer unknown words (default: 0)")
    search.add_argument("--no-repeat-ngram-size", type=int, metavar="N", help="no N-gram comes twice in a sentence")
    search.add_argument("--unnormalized", action="store_true", default=None, help="scores are sums, not means")
    search.add_argument("--sampling", action="store_true", default=None, help="draw translations, by --seed")
    search.add_argument("--sampling-topk", type=int, metavar="N", help="draw among the N most probable tokens")
    search.add_argument(
        "--sampling-topp", type=float, metavar="P", help="draw among the tokens that are most probable, P together"
    )
    search.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (default: 1)")
    search.add_argument("--temperature", type=float, metavar="X", help="above 1: flatter probabilities (default: 1)")

    view = add_view_arguments(parser)
    machine = parser.add_argument_group("machine")
    machine.add_argument(
        "--max-tokens",
        type=int,
        default=max_tokens,
        metavar="N",
        help=f"source tokens of a batch (default: {max_tokens})",
    )
    machine.add_argument("--cpu", action="store_true", help="use no GPU")
    precision = machine.add_mutually_exclusive_group()
    precision.add_argument(
        "--precision",
        choices=("float32", "bf16", "fp16", "int8"),
        help="of matrix products: bf16 and int8 on a CPU, bf16 and fp16 on a GPU (default: that of an exported "
        "checkpoint, else float32)",
    )
    precision.add_argument("--fp16", dest="precision", action="store_const", const="fp16", help="--precision fp16")
    return Groups(search, view)


def search_of(args: argparse.Namespace) -> SearchOptions:
    """The options of the search.

    Raises:
        InputError: one is out of range, or --max-tokens.
    """
    if args.max_tokens < 1:
        raise InputError(f"--max-tokens {args.max_tokens}: at least 1")
    search = SearchOptions(**given(args, SearchOptions))
    search.check()
    return search


def translator_of(args: argparse.Namespace, search: SearchOptions, **view: Optional[str]) -> "DocumentTranslator":
    """The translator.

    Args:
        args: the options.
        search: see :func:`search_of`.
        view: of documents, beside what the options say.

    Raises:
        InputError: files that are not there, or do not belong together.
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

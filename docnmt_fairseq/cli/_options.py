"""Options that commands which ask a model have in common: the model, and the output of a report."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Protocol, Tuple, TypeVar

from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble
    from docnmt_fairseq.corpus.text_codec import TextCodec

FORMATS = ("text", "markdown", "json")


class Report(Protocol):
    """A report that can be written."""

    def to_json(self) -> object:
        """Everything as plain dictionaries and lists."""


R = TypeVar("R", bound=Report)


def add_model_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Adds the model, its data and how it sees text."""
    model = parser.add_argument_group("model")
    model.add_argument("--path", required=required, metavar="FILE", help="checkpoint, or several with colons between")
    model.add_argument(
        "--data",
        required=required,
        type=Path,
        metavar="DIR",
        help="what docnmt prepare wrote: text is split into tokens as it was there; or a data-bin: text is tokens",
    )
    model.add_argument("--tokenized", action="store_true", help="text is tokens between spaces already")
    model.add_argument(
        "--max-tokens", type=int, default=4096, metavar="N", help="of a batch, source or target (default: 4096)"
    )
    model.add_argument("--cpu", action="store_true", help="also where there is a GPU")


def load_models(args: argparse.Namespace) -> "Tuple[Ensemble, TextCodec]":
    """Loads the models, onto the GPU if there is one, and the way from text to their tokens."""
    import torch

    from docnmt_fairseq.checkpoints import load_ensemble
    from docnmt_fairseq.corpus.text_codec import TextCodec

    if args.max_tokens < 1:
        raise InputError(f"--max-tokens {args.max_tokens}: at least 1")
    ensemble = load_ensemble(*args.path.split(":"), data=args.data)
    if torch.cuda.is_available() and not args.cpu:
        for model in ensemble.models:
            model.cuda()
    return ensemble, TextCodec(ensemble.data, args.tokenized)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the format and the file of the report."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="of the report (default: text)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write it (default: standard output)")


def write_report(
    args: argparse.Namespace, report: R, as_text: Callable[[R], str], as_markdown: Callable[[R], str]
) -> None:
    """Prints the report, or writes it and prints where."""
    from docnmt_fairseq.corpus.files import atomic_files

    if args.format == "json":
        text = json.dumps(report.to_json(), ensure_ascii=False, indent=1)
    else:
        text = as_markdown(report) if args.format == "markdown" else as_text(report)
    if args.output is None:
        print(text)
        return
    with atomic_files(args.output) as (stream,):
        stream.write(text + "\n")
    print(args.output)

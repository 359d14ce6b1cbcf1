"""Options that commands which ask a model have in common: the model, and the output of a report."""

import argparse
import json
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Protocol, Tuple, get_args

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.tables import STYLES, Part, render
from docnmt_fairseq.options import allowed_names, default_of, flag_of, help_of
from docnmt_fairseq.registry import Registry
from docnmt_fairseq.translate.view import DocumentView

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble
    from docnmt_fairseq.corpus.text_codec import TextCodec

MAX_TOKENS = 4096


class Report(Protocol):
    """Report of a command."""

    def to_json(self) -> Any:
        """All figures as plain dictionaries and lists."""

    def parts(self) -> Iterable[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""


def add_model_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Adds the model, its data and how it sees text."""
    model = parser.add_argument_group("model")
    model.add_argument("--path", required=required, metavar="FILE", help="checkpoint, or several with colons between")
    model.add_argument(
        "--data",
        required=required,
        type=Path,
        metavar="DIR",
        help="what docnmt prepare wrote: text is split into tokens as it was there; another data-bin: text is tokens",
    )
    model.add_argument("--tokenized", action="store_true", help="text is tokens between spaces already")
    model.add_argument(
        "--max-tokens",
        type=int,
        default=MAX_TOKENS,
        metavar="N",
        help=f"of a batch, source or target (default: {MAX_TOKENS})",
    )
    model.add_argument("--cpu", action="store_true", help="also where there is a GPU")
    add_view_arguments(parser)


def add_view_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Adds how models see documents, by the names of :class:`~docnmt_fairseq.translate.view.DocumentView`."""
    view = parser.add_argument_group("documents", "default: as the model was trained")
    view.add_argument("--max-document-sentences", type=int, metavar="N", help="longer documents go in pieces; 0: never")
    view.add_argument("--max-document-tokens", type=int, metavar="N", help="the same, in tokens")
    view.add_argument("--context-overlap", type=int, metavar="K", help="sentences that a piece sees of the one before")
    view.add_argument("--context-overlap-after", type=int, metavar="K", help="the same, of the one after")
    return view


def given(args: argparse.Namespace, options: type) -> Dict[str, Any]:
    """The fields of a dataclass that were given on the command line."""
    values = {field.name: getattr(args, field.name, None) for field in fields(options)}
    return {name: value for name, value in values.items() if value is not None}


def load_models(args: argparse.Namespace) -> "Tuple[Ensemble, TextCodec]":
    """Loads the models, onto the GPU if there is one, and the way from text to their tokens.

    Raises:
        InputError: files that are not there or do not belong together, a view of documents that a model does not have.
    """
    import torch

    from docnmt_fairseq.corpus.text_codec import TextCodec
    from docnmt_fairseq.translate.loading import load_viewing

    if args.max_tokens < 1:
        raise InputError(f"--max-tokens {args.max_tokens}: at least 1")
    ensemble = load_viewing(*args.path.split(":"), data=args.data, view=DocumentView(**given(args, DocumentView)))
    if torch.cuda.is_available() and not args.cpu:
        for model in ensemble.models:
            model.cuda()
    return ensemble, TextCodec(ensemble.data, args.tokenized)


def add_options_of(group: argparse._ArgumentGroup, registry: Registry[Any], *, unset: bool = False) -> None:
    """Adds every option that something registered declares in its ``Options``, with the names of what has it.

    Args:
        group: where to.
        registry: metrics, readers, ….
        unset: options that are not given are None, so that these can be told apart.
    """
    for known, owners in _declared(registry).values():
        default, names = default_of(known), allowed_names(known)
        settings: Dict[str, Any] = {
            "help": f"{', '.join(owners)}: {help_of(known)}",
            "default": None if unset else default,
        }
        if known.type is bool:
            settings["action"] = "store_true"
        else:
            settings["type"] = next((kind for kind in (int, float) if kind in (known.type, *get_args(known.type))), str)
            settings["choices"] = names or None
            settings["metavar"] = None if names else known.metadata.get("metavar", "N")
            if isinstance(default, (list, tuple)):
                settings["nargs"], default = "+", " ".join(default)
            settings["help"] += "" if default in (None, "") else f" (default: {default})"
        group.add_argument(flag_of(known.name), **settings)


def _declared(registry: Registry[Any]) -> Dict[str, Tuple[Field[Any], List[str]]]:
    """The options of all that is registered by name, each with what has it."""
    found: Dict[str, Tuple[Field[Any], List[str]]] = {}
    for name in registry.names():
        for known in fields(registry[name].Options):
            found.setdefault(known.name, (known, []))[1].append(name)
    return found


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the format and the file of the report."""
    parser.add_argument("--format", choices=(*STYLES, "json"), default="text", help="report format (default: text)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="report file (default: standard output)")


def write_report(args: argparse.Namespace, report: Report) -> None:
    """Prints the report, or writes it to ``--output`` and prints the name of the file."""
    if args.format == "json":
        text = json.dumps(report.to_json(), ensure_ascii=False, indent=1)
    else:
        text = render(report.parts(), args.format)
    if args.output is None:
        print(text)
        return
    write_text(args.output, text + "\n")
    print(args.output)


def write_text(path: Path, text: str) -> None:
    """Writes a report; bytes of file names that are not UTF-8 are escaped."""
    from docnmt_fairseq.corpus.files import atomic_files

    with atomic_files(path) as (stream,):
        stream.write(text.encode("utf-8", "backslashreplace").decode())

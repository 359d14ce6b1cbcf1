"""Arguments of several commands: fields of dataclasses, models and translators, views of documents, reports."""

import argparse
import json
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Protocol, Sequence, Tuple, get_args

from docnmt_fairseq.evaluation.tables import STYLES, Part, render
from docnmt_fairseq.options import allowed_names, default_of, flag_of, help_of
from docnmt_fairseq.registry import Registry
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.view import DocumentView

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble
    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.translate.translator import DocumentTranslator


class Report(Protocol):
    """Report of a command."""

    def to_json(self) -> Any:
        """All figures as plain dictionaries and lists."""

    def parts(self) -> Iterable[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""


def add_fields(
    group: argparse._ActionsContainer, options: type, names: Optional[Sequence[str]] = None, *, unset: bool = False
) -> None:
    """Adds an argument for each field of a dataclass that has a help text; see :func:`docnmt_fairseq.options.option`.

    The type, default, choices and help text are those of the field. Metadata of the field for the command line:
    ``argparse_alias`` (a second flag), ``flag`` (instead of the field's name; a switch that is on by default needs it,
    for switching it off), ``metavar``, ``action`` (e.g. ``append``), ``nargs``.

    Args:
        group: parser or group of arguments.
        options: dataclass.
        names: fields to add, in this order; None: all.
        unset: options that are not given are None, to distinguish them from defaults.
    """
    known = {one.name: one for one in fields(options) if one.metadata.get("help")}
    for name in known if names is None else names:
        _add_field(group, known[name], unset=unset)


def add_groups(parser: argparse.ArgumentParser, *options: type, unset: bool = False) -> None:
    """Adds the fields of dataclasses as :func:`add_fields`, in groups by ``group`` in their metadata."""
    groups: Dict[Optional[str], argparse._ActionsContainer] = {None: parser}
    for known in (known for one in options for known in fields(one) if known.metadata.get("help")):
        title = known.metadata.get("group")
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add_field(groups[title], known, unset=unset)


def add_options_of(group: argparse._ArgumentGroup, registry: Registry[Any], *, unset: bool = False) -> None:
    """Adds the options of all registered classes (their ``Options``), each with the names of the classes.

    Args:
        group: group of arguments.
        registry: metrics, readers, ….
        unset: options that are not given are None, to distinguish them from defaults.
    """
    declared: Dict[str, Tuple[Field[Any], List[str]]] = {}
    for name in registry.names():
        for known in fields(registry[name].Options):
            declared.setdefault(known.name, (known, []))[1].append(name)
    for known, owners in declared.values():
        _add_field(group, known, prefix=f"{', '.join(owners)}: ", unset=unset)


def _add_field(
    group: argparse._ActionsContainer, known: "Field[Any]", *, prefix: str = "", unset: bool = False
) -> None:
    metadata, names = known.metadata, allowed_names(known)
    required = known.default is MISSING and known.default_factory is MISSING
    default = None if required else default_of(known)
    flags = [metadata.get("flag") or flag_of(known.name)]
    flags += [metadata["argparse_alias"]] if "argparse_alias" in metadata else []
    settings: Dict[str, Any] = {"dest": known.name, "help": prefix + help_of(known), "required": required}
    settings["default"] = None if unset else default
    if known.type is bool:
        settings["action"] = "store_false" if default else "store_true"
    else:
        types = (known.type, *get_args(known.type))
        settings["type"] = next((kind for kind in (int, float, Path) if kind in types), str)
        settings["choices"] = names or None
        settings["metavar"] = metadata.get("metavar", None if names else "N")
        settings.update({key: metadata[key] for key in ("nargs", "action") if key in metadata})
        if isinstance(default, (list, tuple)):
            settings.setdefault("nargs", "+")
            default = " ".join(map(str, default))
        if default not in (None, "") and "default" not in metadata["help"]:
            settings["help"] += f" (default: {default})"
    group.add_argument(*flags, **settings)


def positive(text: str) -> int:
    """Integer of at least 1: a type of arguments, for which argparse reports the ``ValueError``."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def add_model_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Adds the options that :func:`load_models` reads."""
    model = parser.add_argument_group("model")
    model.add_argument("--path", required=required, metavar="FILE", help="checkpoint, or several separated by colons")
    model.add_argument(
        "--data",
        required=required,
        type=Path,
        metavar="DIR",
        help="output of docnmt prepare, whose preprocessing is applied to text; for another data-bin, text is tokens",
    )
    model.add_argument("--tokenized", action="store_true", help="the text consists of tokens separated by spaces")
    _add_hardware(parser, 4096)
    add_view_arguments(parser)


def add_translator_arguments(
    parser: argparse.ArgumentParser, max_tokens: int
) -> Tuple[argparse._ArgumentGroup, argparse._ArgumentGroup]:
    """Adds the options that :func:`translator_of` reads; returns the groups of the search and the view, to extend them.

    Args:
        parser: parser of the command.
        max_tokens: default of --max-tokens.
    """
    model = parser.add_argument_group("model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint, or several separated by colons")
    model.add_argument(
        "--data", type=Path, metavar="DIR", help="output of docnmt prepare (default: that of the model's training)"
    )
    search = parser.add_argument_group("search", "as in fairseq-generate")
    names = [known.name for known in fields(SearchOptions) if known.name != "nbest"]
    add_fields(search, SearchOptions, names, unset=True)
    view = add_view_arguments(parser)
    precision = _add_hardware(parser, max_tokens).add_mutually_exclusive_group()
    precision.add_argument(
        "--precision",
        choices=("float32", "bf16", "fp16", "int8"),
        help="precision of matrix products: bf16, int8 on CPUs; bf16, fp16 on GPUs (default: float32)",
    )
    precision.add_argument("--fp16", dest="precision", action="store_const", const="fp16", help="--precision fp16")
    return search, view


def _add_hardware(parser: argparse.ArgumentParser, max_tokens: int) -> argparse._ArgumentGroup:
    hardware = parser.add_argument_group("hardware")
    hardware.add_argument(
        "--max-tokens",
        type=positive,
        default=max_tokens,
        metavar="N",
        help=f"maximum number of tokens in a batch (default: {max_tokens})",
    )
    hardware.add_argument("--cpu", action="store_true", help="use the CPU even if there is a GPU")
    return hardware


def add_view_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Adds the view of documents, see :class:`~docnmt_fairseq.translate.view.DocumentView`."""
    view = parser.add_argument_group("documents", "default: as the model was trained")
    add_fields(view, DocumentView)
    return view


def given(args: argparse.Namespace, options: type) -> Dict[str, Any]:
    """Fields of a dataclass that were given on the command line."""
    values = {field.name: getattr(args, field.name, None) for field in fields(options)}
    return {name: value for name, value in values.items() if value is not None}


def load_models(args: argparse.Namespace) -> "Tuple[Ensemble, TextCodec]":
    """Loads the models, onto the GPU if there is one, and the preprocessing of their text.

    Raises:
        InputError: a file is missing, or the files do not belong together.
    """
    import torch

    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.translate.loading import load_viewing

    ensemble = load_viewing(*args.path.split(":"), data=args.data, view=DocumentView(**given(args, DocumentView)))
    if torch.cuda.is_available() and not args.cpu:
        for model in ensemble.models:
            model.cuda()
    return ensemble, TextCodec(ensemble.data, args.tokenized)


def search_of(args: argparse.Namespace) -> SearchOptions:
    """Returns the search options.

    Raises:
        InputError: an option is out of range.
    """
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

    return DocumentTranslator.from_checkpoint(
        *args.path.split(":"),
        data=args.data,
        view=DocumentView(**{**given(args, DocumentView), **view}),
        search=search,
        max_tokens=args.max_tokens,
        cpu=args.cpu,
        precision=args.precision,
    )


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
    from docnmt_fairseq.files import write_bytes

    write_bytes(path, text.encode("utf-8", "backslashreplace"))

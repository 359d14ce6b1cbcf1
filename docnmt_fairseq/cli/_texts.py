"""The options of ``docnmt translate`` that say which texts there are, what they are, and where translations go."""

import argparse
from functools import cache
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Tuple

from docnmt_fairseq.cli._jobs import add_engine_arguments, engine_options
from docnmt_fairseq.corpus.steps import sha256
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.beside import BESIDE
from docnmt_fairseq.translate.files import EMPTY_LINES
from docnmt_fairseq.translate.formats import FORMATS, RUNNING, SEPARATE, Reading
from docnmt_fairseq.translate.request import EVERY, STANDARD, Request, read_once
from docnmt_fairseq.translate.shards import Shard

# Options that translations do not depend on: what was begun with one of them goes on with another.
FREE = ("input", "output", "pattern", "force", "resume", "shards", "shard", "counts", "done", "max_tokens", "cpu")
OF_ENGINES = ("engine", "workers", "tries", *engine_options())
INSIDE = ("command", "run", "quiet", "arguments")  # no options, but how the command is run
SHOWN = 12  # hexadecimal digits of what tells contents of files apart


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the texts, their formats, and shards."""
    texts = parser.add_argument_group("texts")
    texts.add_argument(
        "--input",
        nargs="+",
        type=Path,
        default=[STANDARD],
        metavar="PATH",
        help="file, several, or a folder with all files in it; .gz and .zst are unpacked (default: standard input)",
    )
    texts.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        help="file, or the folder for several; each appears when it is complete (default: standard output)",
    )
    texts.add_argument(
        "--prefixes",
        type=Path,
        metavar="FILE",
        help="what translations begin with, a line for each line of one input of a sentence a line; empty: anything",
    )
    texts.add_argument(
        "--corrected",
        type=Path,
        metavar="FILE",
        help="better translations of such lines: a model that looks back at translations sees these; empty: its own",
    )
    texts.add_argument("--pattern", default=EVERY, metavar="GLOB", help="which files of a folder, e.g. '*.en'")
    _add_whole_work(texts)
    texts.add_argument(
        "--shard", type=int, metavar="I", help="... of which this is the I-th; the last one puts the files together"
    )
    texts.add_argument(
        "--counts",
        type=Path,
        metavar="FILE",
        help="of the sentences of all files, as --engine counted them for --shard",
    )
    texts.add_argument("--done", type=Path, metavar="FILE", help="make this empty file when everything is written")
    formats = parser.add_argument_group("formats")
    formats.add_argument(
        "--format",
        choices=FORMATS.names(),
        help="of all files (default: by their endings: " + _endings() + "; any other: text, a sentence a line)",
    )
    formats.add_argument(
        "--split",
        choices=SEPARATE,
        nargs="?",
        const=SEPARATE[1],
        help="plain text is running text: divide it into sentences. paragraphs: a paragraph ends at an empty line and "
        "its sentences go on over line ends (default where no value is given); lines: every line is a paragraph",
    )
    formats.add_argument(
        "--empty-lines",
        choices=EMPTY_LINES,
        default=EMPTY_LINES[0],
        help="what one ends in text of a sentence a line; paragraph: every file is one document (default: document)",
    )


def add_work_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what steers the work as a whole, and not a shard of it: the engine, and what to do about what is there."""
    _add_whole_work(parser)
    add_engine_arguments(parser)


def _add_whole_work(texts: argparse._ActionsContainer) -> None:
    there = texts.add_mutually_exclusive_group()
    there.add_argument("--force", action="store_true", help="replace translations that are there already")
    there.add_argument(
        "--resume",
        action="store_true",
        help="leave them, and go on after the last document of one that was interrupted",
    )
    texts.add_argument(
        "--shards",
        type=int,
        default=1,
        metavar="N",
        help="share the documents out among N jobs of an --engine, or among N runs ...",
    )


def _endings() -> str:
    known = {name: FORMATS[name].endings for name in FORMATS.names()}
    return ", ".join(f"{' '.join(endings)}: {name}" for name, endings in known.items() if endings)


def request_of(args: argparse.Namespace) -> Request:
    """What is asked for.

    Raises:
        InputError: options that do not go together.
    """
    if args.split and args.format not in (None, "text", RUNNING):
        raise InputError(f"--split: not with --format {args.format}, which has paragraphs of its own")
    if args.shards > 1 and args.shard is None and args.engine is None:
        raise InputError(f"--shards {args.shards}: give --engine, or --shard, from 1 to {args.shards}")
    if args.resume and args.output is None:
        raise InputError("--resume: needs --output; nothing is known of what went to standard output before")
    if args.output is not None and read_once(args.output):
        raise InputError(
            f"--output {args.output}: is no file, but a pipe or a device; leave it out, and redirect what is printed"
        )
    if args.engine is not None and args.shard is not None:
        raise InputError(f"--shard {args.shard}: not with --engine, which runs all of them")
    if args.counts is not None and args.shard is None:
        raise InputError("--counts: goes with --shard")

    @cache
    def languages() -> Tuple[str, str]:
        from docnmt_fairseq.translate.task import languages_of

        return languages_of(args.path.split(":")[0], args.data)

    @cache
    def alone() -> bool:
        from docnmt_fairseq.translate.task import translates_alone

        return translates_alone(args.path.split(":")[0], args.context)

    return Request(
        args.input,
        args.output,
        args.pattern,
        args.force,
        args.resume,
        RUNNING if args.split and args.format else args.format or "",
        Reading(languages, args.empty_lines, bool(args.split), args.split or SEPARATE[1], alone),
        Shard() if args.shard is None and args.engine else Shard(1 if args.shard is None else args.shard, args.shards),
        args.counts,
    )


def files_beside(args: argparse.Namespace) -> Dict[str, Path]:
    """The files beside the text that are given, by :data:`~docnmt_fairseq.translate.beside.BESIDE`."""
    return {name: getattr(args, name) for name in BESIDE if getattr(args, name) is not None}


def settings_of(args: argparse.Namespace, files: Mapping[str, Iterable[Path]]) -> Dict[str, str]:
    """What translations depend on.

    Args:
        args: the options.
        files: by option, those that it leads to: their content counts, as it can change while names stay. Those
            beside the text are known here.
    """
    values: Dict[str, Any] = {
        name: value for name, value in vars(args).items() if name not in (*FREE, *OF_ENGINES, *INSIDE)
    }
    settings = {name.replace("_", "-"): str(value) for name, value in values.items() if value is not None}
    beside = {name: [path] for name, path in files_beside(args).items()}
    for option, paths in {**files, **beside}.items():
        digests = [sha256(path)[:SHOWN] for path in paths]
        settings[option] = " ".join(filter(None, [settings.get(option), f"[{' '.join(digests)}]"]))
    return settings

"""Translates documents: files in, the same files out in another language.

Plain text has a sentence per line; an empty line ends a document, a line <p> a paragraph. In other formats (subtitles,
Markdown, HTML, Word, EPUB, gettext, XLIFF, JSON; running text with --split) text is extracted, split into sentences,
and put back; each file is one document. Text is normalised, tokenised, truecased and split into subwords as
docnmt prepare did for the model, and the translation converted back. Translations equal those of
fairseq-generate, except that --max-len-a applies to each sentence's own length.
Works with models of document_translation, concatenated_translation and
fairseq's translation.
"""

import argparse
import logging
import os
from contextlib import nullcontext
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Dict, Iterable, List, Tuple

from docnmt_fairseq.cli._options import add_fields, add_translator_arguments, given, search_of, translator_of
from docnmt_fairseq.corpus.prepared import MANIFEST, prepared_folder
from docnmt_fairseq.files import fingerprint
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.formats import FORMATS, PLAIN, RUNNING, SPLITS, Reading
from docnmt_fairseq.translate.inputs import (
    EVERY,
    LINE_INPUTS,
    STANDARD,
    InputFile,
    Request,
    Shard,
    check_line_input,
    input_files,
    remaining_lines,
)
from docnmt_fairseq.translate.lines import EMPTY_LINES
from docnmt_fairseq.translate.parallel import JobOptions, translate_in_parallel
from docnmt_fairseq.translate.translate_files import ALL, translate_files

logger = logging.getLogger(__name__)

SHUFFLED = "shuffled"
JOBS = tuple(known.name for known in fields(JobOptions))
# Options that translations do not depend on.
UNRELATED = (
    *("input", "output", "pattern", "force", "resume", "shard", "max_tokens", "cpu", *JOBS),
    *("command", "run", "quiet", "arguments"),
)
HELP = "translate text: a document, a folder of them, or standard input"
QUIET = ("fairseq",)  # importing it logs optional packages
EXAMPLES = """examples:
  docnmt translate --path work/document/checkpoint_best.pt --data work --input talk.en --output talk.de
  docnmt translate --path work/document/checkpoint_best.pt --data work --input books/ --output translated/ --resume
  docnmt translate --path work/document/checkpoint_best.pt --data work --input film.en.srt --output film.de.srt
  docnmt translate --path work/document/checkpoint_best.pt --data work --input books/ --output translated/ --workers 4
  cat talk.en | docnmt translate --path work/document/checkpoint_best.pt --data work > talk.de"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the files, their formats, parallel execution, and the options of the translator."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    _add_files(parser.add_argument_group("files"))
    _add_formats(parser.add_argument_group("formats"))
    parallel = parser.add_argument_group("parallel execution")
    parallel.add_argument(
        "--shard",
        type=Shard.parse,
        default=Shard(),
        metavar="I/N",
        help="translate the I-th of N parts: files of a folder, or documents of a file",
    )
    add_fields(parallel, JobOptions, unset=True)
    search, view = add_translator_arguments(parser, max_tokens=12000)
    add_fields(search, SearchOptions, ["nbest"], unset=True)
    search.add_argument(
        "--scores",
        action="store_true",
        help="also write OUTPUT.scores.tsv: line, rank, score and text of every translation",
    )
    view.add_argument(
        "--context",
        choices=("document", "none", SHUFFLED),
        help="none: every sentence without context; shuffled: among sentences of other documents, to measure the "
        "effect of context",
    )


def _add_files(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--input",
        nargs="+",
        type=Path,
        default=[STANDARD],
        metavar="PATH",
        help="files, or folders with all files in them; .gz, .bz2, .xz and .zst are unpacked (default: standard input)",
    )
    group.add_argument(
        "--output", type=Path, metavar="PATH", help="file, or folder for several inputs (default: standard output)"
    )
    group.add_argument("--pattern", default=EVERY, metavar="GLOB", help="files of a folder to translate, e.g. '*.en'")
    existing = group.add_mutually_exclusive_group()
    existing.add_argument("--force", action="store_true", help="replace existing translations")
    existing.add_argument("--resume", action="store_true", help="keep existing translations, continue interrupted ones")
    group.add_argument(
        "--target-prefix",
        type=Path,
        metavar="FILE",
        help="forced beginnings of translations, one per line of the single plain-text input; empty: none",
    )
    group.add_argument(
        "--target-context",
        type=Path,
        metavar="FILE",
        help="corrected translations, one per line of the single plain-text input, which models with target-side "
        "context see instead of their own; empty: their own",
    )


def _add_formats(group: argparse._ArgumentGroup) -> None:
    endings = ", ".join(f"{' '.join(FORMATS[n].endings)}: {n}" for n in FORMATS.names() if FORMATS[n].endings)
    group.add_argument(
        "--format",
        choices=FORMATS.names(),
        help=f"format of all files (default: by ending, {endings}; none, .txt or a language: text)",
    )
    group.add_argument(
        "--split",
        choices=SPLITS,
        nargs="?",
        const=SPLITS[1],
        help="plain text is running text to be split into sentences; paragraphs: end at empty lines (default); lines: "
        "every line is a paragraph",
    )
    group.add_argument(
        "--empty-lines",
        choices=EMPTY_LINES,
        default=EMPTY_LINES[0],
        help="what an empty line ends in text with a sentence per line; paragraph: a file is one document (default: "
        "document)",
    )


def run(args: argparse.Namespace) -> None:
    """Translates, and logs the throughput."""
    search = search_of(args)
    scores = args.scores or search.nbest > 1
    request = _request(args)
    for name, path in _line_inputs(args).items():
        check_line_input(f"--{name.replace('_', '-')}", path, request)
    jobs = JobOptions(**given(args, JobOptions))
    with nullcontext() if args.output is None else request.lock():
        if args.output is None or jobs.workers == 1:
            _translate(args, input_files(request), search, scores)
            return
        folder = None if args.data is None else prepared_folder(args.data)
        files = [] if folder is None else [folder / MANIFEST, *sorted(folder.glob("data-bin/similar.*.npz"))]
        own = _fingerprint(args, [*map(Path, args.path.split(":")), *files, *request.inputs])
        translate_in_parallel(request, _worker_arguments(args), jobs, own)


def _request(args: argparse.Namespace) -> Request:
    path = args.path.split(":")[0]

    @cache
    def languages() -> Tuple[str, str]:
        from docnmt_fairseq.translate.loading import languages_of

        return languages_of(path, args.data)

    @cache
    def alone() -> bool:
        from docnmt_fairseq.translate.loading import is_sentence_level

        return is_sentence_level(path, args.context)

    return Request(
        args.input,
        args.output,
        args.pattern,
        args.force,
        args.resume,
        RUNNING if args.split and args.format == PLAIN else args.format or "",
        Reading(languages, args.empty_lines, bool(args.split), args.split or SPLITS[1], alone),
        args.shard,
    )


def _line_inputs(args: argparse.Namespace) -> Dict[str, Path]:
    return {name: getattr(args, name) for name in LINE_INPUTS if getattr(args, name) is not None}


def _fingerprint(args: argparse.Namespace, files: Iterable[Path]) -> str:
    """Returns the fingerprint of the options and files that translations depend on."""
    settings = {name: str(value) for name, value in vars(args).items() if name not in UNRELATED}
    return fingerprint(settings, [*files, *_line_inputs(args).values()])


def _worker_arguments(args: argparse.Namespace) -> List[str]:
    """Returns the command line of a worker, without the options of the whole work."""
    parser = argparse.ArgumentParser(add_help=False)
    add_fields(parser, JobOptions, unset=True)
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--resume", action="store_true")
    leading = args.arguments[0].startswith("-") and "=" not in args.arguments[0]  # --user-dir, and its folder
    position = args.arguments.index(args.command, 2 if leading else 0)
    user_dir = [] if args.user_dir is None else ["--user-dir", os.path.abspath(args.user_dir)]
    return [*user_dir, args.command, *parser.parse_known_args(args.arguments[position + 1 :])[1]]


def _translate(args: argparse.Namespace, files: List[InputFile], search: SearchOptions, scores: bool) -> None:
    if not files:
        return
    from tqdm import tqdm

    from docnmt_fairseq.translate.shuffled_context import ShuffledContext

    shuffled = args.context == SHUFFLED
    translator = translator_of(args, search, **({"context": None} if shuffled else {}))
    total = sum(file.sentences for file in files) or None  # unknown for standard input
    with tqdm(total=total, desc="translate", unit=" sentences", disable=None) as progress:
        translate_files(
            files,
            ShuffledContext(translator, search.seed) if shuffled else translator,
            args.empty_lines,
            progress.update,
            scores,
            resume=args.resume,
            fingerprint="" if args.output is None else _fingerprint(args, translator.files),
            group_sentences=ALL if shuffled else None,
            line_inputs={name: remaining_lines(path, files[0]) for name, path in _line_inputs(args).items()},
        )
    logger.info(str(translator.throughput))

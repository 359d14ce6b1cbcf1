"""Translates documents: files in, the same files out in another language.

Plain text is a sentence a line; an empty line ends a document, a line <p> a paragraph. Of other formats (subtitles,
Markdown, HTML, Word, gettext, XLIFF; running text with --split) the text is found, divided into sentences, and laid
back; each file is one document. What docnmt prepare did to the text of the model is done to it and undone:
normalisation, tokenisation, truecasing, subwords. The translations are those of fairseq-generate, only that --max-len-a
is of each sentence's own length. Works with models of
document_translation, concatenated_translation and fairseq's own translation.
"""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from docnmt_fairseq.cli._jobs import (
    add_engine_arguments,
    arguments_without,
    engine_of,
    refuse_engine_options,
    user_dir_of,
)
from docnmt_fairseq.cli._texts import add_text_arguments, add_work_arguments, files_beside, request_of, settings_of
from docnmt_fairseq.cli._translator import add_translator_arguments, search_of, translator_of
from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs.workplace import DOCNMT
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.alone import holding_output
from docnmt_fairseq.translate.begun import states, states_of_prepared
from docnmt_fairseq.translate.beside import TranslatorBeside, check_beside, lines_beside
from docnmt_fairseq.translate.files import ALL, Translator, translate_files
from docnmt_fairseq.translate.sharded import translate_in_shards
from docnmt_fairseq.translate.texts import FileToTranslate, texts_of

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator

logger = logging.getLogger(__name__)

SHUFFLED = "shuffled"
HELP = "translate text: a document, a folder of them, or standard input"
QUIET = ("fairseq",)  # importing it logs what it would like to have installed
EXAMPLES = """examples:
  docnmt translate --path work/document/checkpoint_best.pt --data work --input talk.en --output talk.de
  docnmt translate --path work/document/checkpoint_best.pt --data work --input books/ --output translated/ --resume
  docnmt translate --path work/document/checkpoint_best.pt --data work --input film.en.srt --output film.de.srt
  docnmt translate --path work/document/checkpoint_best.pt --data work --input books/ --output translated/ \\
      --shards 8 --engine processes --workers 4
  cat talk.en | docnmt translate --path work/document/checkpoint_best.pt --data work > talk.de"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the texts, the model, the search, the view of documents and the machine."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_text_arguments(parser)
    add_engine_arguments(parser)

    groups = add_translator_arguments(parser, max_tokens=12000)
    groups.search.add_argument(
        "--nbest", type=int, metavar="N", help="translations of every sentence, written as by --scores (default: 1)"
    )
    groups.search.add_argument(
        "--scores",
        action="store_true",
        help="beside OUTPUT write OUTPUT.scores.tsv: line, rank, score and text of every translation",
    )
    groups.view.add_argument(
        "--context",
        choices=("document", "none", SHUFFLED),
        help="none: every sentence by itself; shuffled: among sentences of other documents, to see what context is "
        "worth to a model",
    )


def run(args: argparse.Namespace) -> Optional[int]:
    """Translates, then logs how fast it was; or lets an engine do it."""
    search = search_of(args)
    scores = args.scores or search.nbest > 1
    if scores and args.output is None:
        raise InputError("--scores, --nbest: need --output, beside which they are written")
    if args.shards > 1 and args.context == SHUFFLED:
        raise InputError("--context shuffled: needs all documents together; leave --shards out")
    if args.resume and args.context == SHUFFLED:
        raise InputError("--resume: not with --context shuffled, of which all is written at once; --force begins anew")
    request, beside = request_of(args), files_beside(args)
    for name, path in beside.items():
        if args.context == SHUFFLED:
            raise InputError(f"--{name}: not with --context shuffled")
        check_beside(f"--{name}", path, request)
    if args.engine is not None:
        arguments = arguments_without(args, add_work_arguments)
        engine, settings = engine_of(args), _begun_with(args)
        complete = translate_in_shards(
            request,
            args.shards,
            arguments,
            engine,
            settings=settings,
            tries=args.tries,
            program=(*DOCNMT, *user_dir_of(args)),
        )
        if complete and args.done is not None:  # each job has such a file of its own
            atomic_write_bytes(args.done, b"")
        return None
    refuse_engine_options(args)
    with holding_output(request):
        status = _translate(args, texts_of(request), search, scores)
        if args.done is not None and not status:
            atomic_write_bytes(args.done, b"")
    return status


def _begun_with(args: argparse.Namespace) -> Dict[str, Any]:
    """What translations depend on beside the texts: options, and the files of the model."""
    options = {f"--{name}": value for name, value in settings_of(args, {}).items()}
    prepared = {} if args.data is None else states_of_prepared(args.data)
    return {**options, **states(map(Path, args.path.split(":"))), **prepared}


def _translate(
    args: argparse.Namespace, texts: List[FileToTranslate], search: SearchOptions, scores: bool
) -> Optional[int]:
    if not texts:
        return None
    from tqdm import tqdm

    translator = translator_of(args, search, **({"context": None} if args.context == SHUFFLED else {}))
    settings = {} if args.output is None else settings_of(args, translator.files)
    total = sum(text.sentences for text in texts) or None  # that of standard input is not known
    with tqdm(total=total, desc="translate", unit=" sentences", disable=None) as progress:
        together = ALL if args.context == SHUFFLED else None
        try:
            translate_files(
                texts, _told(translator, args, texts), args.empty_lines, progress.update, scores,
                resume=args.resume, settings=settings, together=together,
            )  # fmt: skip
        except KeyboardInterrupt:
            progress.close()
            logger.info(_interrupted(texts, args.context == SHUFFLED))
            raise
    logger.info(str(translator.throughput))
    return None


def _told(translator: "DocumentTranslator", args: argparse.Namespace, texts: Sequence[FileToTranslate]) -> Translator:
    """The translator with what the options say of the texts."""
    from docnmt_fairseq.translate.false_context import ShuffledContext

    if args.context == SHUFFLED:
        return ShuffledContext(translator, args.seed)
    beside = {name: lines_beside(path, texts[0]) for name, path in files_beside(args).items()}
    return TranslatorBeside(translator, beside) if beside else translator


def _interrupted(texts: Sequence[FileToTranslate], at_once: bool) -> str:
    if at_once:
        return "of --context shuffled nothing is written before all is translated"
    if any(text.target is None for text in texts):
        return "what was written to standard output is whole documents"
    return "the same command with --resume goes on after the last document that was written"

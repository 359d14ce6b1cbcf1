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
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

from docnmt_fairseq.cli._texts import add_text_arguments, request_of, settings_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.files import ALL, Translator, translate_files
from docnmt_fairseq.translate.jobs import Job, jobs_of

logger = logging.getLogger(__name__)

SHUFFLED = "shuffled"
INTERRUPTED = 130  # as a shell says of a program that Ctrl-C ended
HELP = "translate text: a document, a folder of them, or standard input"
QUIET = ("fairseq",)  # importing it logs what it would like to have installed
EXAMPLES = """examples:
  docnmt translate --path work/document/checkpoint_best.pt --data work --input talk.en --output talk.de
  docnmt translate --path work/document/checkpoint_best.pt --data work --input books/ --output translated/ --resume
  docnmt translate --path work/document/checkpoint_best.pt --data work --input film.en.srt --output film.de.srt
  cat talk.en | docnmt translate --path work/document/checkpoint_best.pt --data work > talk.de"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the texts, the model, the search, the view of documents and the machine."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    add_text_arguments(parser)

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
    search.add_argument("--temperature", type=float, metavar="X", help="above 1: flatter probabilities (default: 1)")
    search.add_argument(
        "--nbest", type=int, metavar="N", help="translations of every sentence, written as by --scores (default: 1)"
    )
    search.add_argument(
        "--scores",
        action="store_true",
        help="beside OUTPUT write OUTPUT.scores.tsv: line, rank, score and text of every translation",
    )

    view = parser.add_argument_group("documents", "default: as the model was trained")
    view.add_argument(
        "--context",
        choices=("document", "none", SHUFFLED),
        help="none: every sentence by itself; shuffled: among sentences of other documents, to see what context is "
        "worth to a model",
    )
    view.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of --context shuffled and --sampling (default: 1)"
    )
    view.add_argument("--max-document-sentences", type=int, metavar="N", help="longer documents go in pieces; 0: never")
    view.add_argument("--max-document-tokens", type=int, metavar="N", help="the same, in tokens")
    view.add_argument("--context-overlap", type=int, metavar="K", help="sentences that a piece sees of the one before")
    view.add_argument("--context-overlap-after", type=int, metavar="K", help="the same, of the one after")

    machine = parser.add_argument_group("machine")
    machine.add_argument(
        "--max-tokens", type=int, default=12000, metavar="N", help="source tokens of a batch (default: 12000)"
    )
    machine.add_argument("--cpu", action="store_true", help="use no GPU")
    precision = machine.add_mutually_exclusive_group()
    precision.add_argument(
        "--precision",
        choices=("float32", "bf16", "fp16", "int8"),
        default="float32",
        help="of matrix products: bf16 and int8 on a CPU, bf16 and fp16 on a GPU (default: float32)",
    )
    precision.add_argument("--fp16", dest="precision", action="store_const", const="fp16", help="--precision fp16")


def run(args: argparse.Namespace) -> Optional[int]:
    """Translates, then logs how fast it was."""
    if args.max_tokens < 1:
        raise InputError(f"--max-tokens {args.max_tokens}: at least 1")
    search = SearchOptions(**_given(args, SearchOptions))
    search.check()
    scores = args.scores or search.nbest > 1
    if scores and args.output is None:
        raise InputError("--scores, --nbest: need --output, beside which they are written")
    jobs = jobs_of(request_of(args))
    if not jobs:
        return None
    from tqdm import tqdm

    from docnmt_fairseq.translate.false_context import ShuffledContext
    from docnmt_fairseq.translate.task import DocumentView
    from docnmt_fairseq.translate.translator import DocumentTranslator

    view = _given(args, DocumentView)
    false = view.get("context") == SHUFFLED
    if false:
        del view["context"]
    translator = DocumentTranslator.from_checkpoint(
        *args.path.split(":"),
        data=args.data,
        view=DocumentView(**view),
        search=search,
        max_tokens=args.max_tokens,
        cpu=args.cpu,
        precision=args.precision,
    )
    total = sum(job.sentences for job in jobs) or None  # that of standard input is not known
    with tqdm(total=total, desc="translate", unit=" sentences", disable=None) as progress:
        shown: Translator = ShuffledContext(translator, args.seed) if false else translator
        together = ALL if false else None
        try:
            translate_files(
                jobs, shown, args.empty_lines, progress.update, scores,
                resume=args.resume, settings=settings_of(args), together=together,
            )  # fmt: skip
        except KeyboardInterrupt:
            progress.close()
            logger.info(_interrupted(jobs))
            return INTERRUPTED
    logger.info(str(translator.throughput))
    return None


def _interrupted(jobs: Sequence[Job]) -> str:
    if any(job.target is None for job in jobs):
        return "interrupted; what was written to standard output is whole documents"
    return "interrupted; the same command with --resume goes on after the last document that was written"


def _given(args: argparse.Namespace, options: type) -> Dict[str, Any]:
    """The fields of a dataclass that were given on the command line."""
    values = {field.name: getattr(args, field.name) for field in fields(options)}
    return {name: value for name, value in values.items() if value is not None}

"""Measures the accuracy of a model on a contrastive test set: is the correct translation the most probable one?

Candidates are scored by forced decoding with the true source and target sentences around them; every model of this
package and of fairseq can be used, with the context that it had in training. Ties and NaN count as incorrect. CTXPRO is
answered by translating.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, List, Tuple

from docnmt_fairseq.cli._options import add_fields, add_model_arguments, add_output_arguments, load_models, write_report
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.significance import IntervalOptions
from docnmt_fairseq.options import options_of

if TYPE_CHECKING:
    from docnmt_fairseq.evaluation.contrast.items import ContrastItem

HELP = "accuracy on contrastive test sets: ContraPro, Voita, Bawden, CTXPRO, artificial"
SETS = ("synth", "contrapro", "voita", "bawden", "ctxpro")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the set, the scoring and the output."""
    add_model_arguments(parser, required=False)
    items = parser.add_argument_group("test set")
    items.add_argument("--set", required=True, choices=SETS, help="format of the set")
    items.add_argument(
        "--items",
        required=True,
        type=Path,
        metavar="FILE",
        help="synth: SPLIT.phenomena.tsv next to its texts; otherwise the JSON file of the set (voita: also "
        "SPLIT.contrastive.json)",
    )
    context = items.add_mutually_exclusive_group()
    context.add_argument("--documents", type=Path, metavar="DIR", help="contrapro: OpenSubtitles documents")
    context.add_argument(
        "--context-files", metavar="PREFIX", help="contrapro: PREFIX.LANGUAGE, context in plain text files"
    )
    items.add_argument(
        "--context-sentences",
        type=int,
        default=10,
        metavar="N",
        help="contrapro: previous sentences from --documents, 0: all (default: 10)",
    )
    items.add_argument(
        "--inputs", type=Path, metavar="FILE", help="ctxpro: context and sentence joined by <eos>, one line per item"
    )
    items.add_argument(
        "--translations",
        type=Path,
        metavar="FILE",
        help="ctxpro: judge these instead of a model's, one line per item: the part after the last <eos>, or for "
        "items with context in --inputs the last sentence",
    )
    scoring = parser.add_argument_group("scoring")
    scoring.add_argument("--normalise", action="store_true", help="divide scores by the number of target tokens")
    scoring.add_argument("--beam", type=int, default=5, metavar="N", help="ctxpro: beam size (default: 5)")
    scoring.add_argument("--lenpen", type=float, default=1, metavar="X", help="ctxpro: length penalty (default: 1)")
    scoring.add_argument(
        "--max-len-a", type=float, default=0, metavar="A", help="ctxpro: length limit per source token (default: 0)"
    )
    scoring.add_argument("--max-len-b", type=int, default=200, metavar="B", help="... plus this number (default: 200)")
    add_fields(scoring, IntervalOptions)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.corpus.files import read_lines
    from docnmt_fairseq.evaluation.contrast import ctxpro
    from docnmt_fairseq.evaluation.contrast.report import build_report
    from docnmt_fairseq.evaluation.contrast.scoring import answer
    from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder

    intervals = options_of(args, IntervalOptions)
    judged = args.translations is not None and args.set == "ctxpro"
    if not judged and (args.path is None or args.data is None):
        raise InputError("--path: give a model with --path and --data")
    about = {"set": args.set, "file": str(args.items)}
    if judged:
        items = ctxpro.read(args.items, args.inputs)
        answers = ctxpro.judge_translations(items, list(read_lines(args.translations)), with_context=True)
        about["translations"] = str(args.translations)
    else:
        ensemble, codec = load_models(args)
        about["model"] = args.path
        if args.set == "ctxpro":
            from fairseq.dataclass.configs import GenerationConfig

            options = ("beam", "lenpen", "max_len_a", "max_len_b")
            search = GenerationConfig(**{name: getattr(args, name) for name in options})
            items = ctxpro.read(args.items, args.inputs)
            translations = ctxpro.translate(items, ensemble, codec, search, args.max_tokens)
            answers = ctxpro.judge_translations(items, translations)
        else:
            decoder = ForcedDecoder(ensemble, args.max_tokens)
            answers = answer(_read_items(args, ensemble.languages), decoder, codec, args.normalise)
            about["scores"] = "log-probability" + (" per token" if args.normalise else "")
    write_report(args, build_report(answers, about, intervals))


def _read_items(args: argparse.Namespace, languages: Tuple[str, str]) -> "List[ContrastItem]":
    from docnmt_fairseq.evaluation.contrast import bawden, contrapro, synth, voita

    if args.set == "contrapro":
        return contrapro.read(args.items, languages, args.documents, args.context_files, args.context_sentences)
    return {"synth": synth, "voita": voita, "bawden": bawden}[args.set].read(args.items)

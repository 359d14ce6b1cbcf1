"""Asks a model about a contrastive test set: is the true translation more likely than the false ones, in its document?

Any model of this package or of fairseq's own: what it sees of a document is what it saw in training. Scores are
log-probabilities of the whole sentence, given the true source and target sentences around it. A tie and a score that is
no number are wrong answers, and are counted. CTXPRO is answered by translating.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, List, Tuple

from docnmt_fairseq.cli._options import (
    MAX_TOKENS,
    add_model_arguments,
    add_output_arguments,
    given,
    load_models,
    write_report,
)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.translate.view import DocumentView

if TYPE_CHECKING:
    from docnmt_fairseq.evaluation.contrast.items import Item

HELP = "accuracy on contrastive test sets: ContraPro, Voita, Bawden, CTXPRO, artificial"
SEARCH = ("beam", "lenpen", "max_len_a", "max_len_b")  # fairseq's options of translating
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
        help="synth: SPLIT.phenomena.tsv beside its texts; else the set's JSON (voita: also SPLIT.contrastive.json)",
    )
    items.add_argument("--documents", type=Path, metavar="DIR", help="contrapro: documents of OpenSubtitles")
    items.add_argument("--context-sentences", type=int, metavar="N", help="of --documents, 0: all before (default: 10)")
    items.add_argument(
        "--context-files", metavar="PREFIX", help="contrapro: PREFIX.LANGUAGE, the plain form of context"
    )
    items.add_argument("--inputs", type=Path, metavar="FILE", help="ctxpro: sentences joined by <eos>, a line an item")
    items.add_argument(
        "--translations",
        type=Path,
        metavar="FILE",
        help="ctxpro: judge these, a line an item, instead of a model's: the part after the last <eos>; without <eos>, "
        "where --inputs give context, the last sentence",
    )

    scoring = parser.add_argument_group("scoring")
    scoring.add_argument("--normalise", action="store_true", help="divide scores by the number of target tokens")
    scoring.add_argument("--beam", type=int, metavar="N", help="of translating (default: 5)")
    scoring.add_argument("--lenpen", type=float, metavar="X", help="of translating (default: 1)")
    scoring.add_argument("--max-len-a", type=float, metavar="A", help="of translating (default: 0)")
    scoring.add_argument("--max-len-b", type=int, metavar="B", help="of translating (default: 200)")
    scoring.add_argument("--samples", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1,000)")
    scoring.add_argument("--seed", type=int, default=1, metavar="N", help="of the bootstrap (default: 1)")
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.corpus.files import read_lines
    from docnmt_fairseq.evaluation.bootstrap import check_bootstrap
    from docnmt_fairseq.evaluation.contrast import ctxpro
    from docnmt_fairseq.evaluation.contrast.generating import judge_translations, translate
    from docnmt_fairseq.evaluation.contrast.judging import answer
    from docnmt_fairseq.evaluation.contrast.report import as_markdown, as_text, build_report
    from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder

    _check_options(args)
    check_bootstrap(args.samples, args.seed)  # before the work, not after it
    about = {"set": args.set, "file": str(args.items)}
    if args.translations is not None:
        items = ctxpro.read(args.items, args.inputs)
        answers = judge_translations(items, list(read_lines(args.translations)), of_context_too=True)
        about["translations"] = str(args.translations)
    else:
        ensemble, codec = load_models(args)
        about["model"] = args.path
        if args.set == "ctxpro":
            from fairseq.dataclass.configs import GenerationConfig

            told = {name: getattr(args, name) for name in SEARCH if getattr(args, name) is not None}
            search = GenerationConfig(**told)
            items = ctxpro.read(args.items, args.inputs)
            answers = judge_translations(items, translate(items, ensemble, codec, search, args.max_tokens))
        else:
            questions = _read(args, ensemble.languages)
            answers = answer(questions, ForcedDecoder(ensemble, args.max_tokens), codec, args.normalise)
            about["scores"] = "log-probability" + (" a token" if args.normalise else "")
    report = build_report(answers, about, args.samples, args.seed)
    write_report(args, report, as_text, as_markdown)


def _read(args: argparse.Namespace, languages: Tuple[str, str]) -> "List[Item]":
    from docnmt_fairseq.evaluation.contrast import bawden, contrapro, synth, voita

    if args.set == "contrapro":
        sentences = 10 if args.context_sentences is None else args.context_sentences
        return contrapro.read(args.items, languages, args.documents, args.context_files, sentences)
    return {"synth": synth, "voita": voita, "bawden": bawden}[args.set].read(args.items)


def _check_options(args: argparse.Namespace) -> None:
    """Refuses options that the set has no use for, rather than leave them without effect."""
    of_set = {"documents": "contrapro", "context_sentences": "contrapro", "context_files": "contrapro"}
    of_set.update(dict.fromkeys(("inputs", "translations", *SEARCH), "ctxpro"))
    for name, needed in of_set.items():
        if getattr(args, name) is not None and args.set != needed:
            raise InputError(f"{flag_of(name)}: only for --set {needed}")
    if args.normalise and args.set == "ctxpro":
        raise InputError("--normalise: there are no scores to divide with --set ctxpro")
    if args.documents is not None and args.context_files is not None:
        raise InputError("--documents and --context-files: give one of them")
    if args.context_sentences is not None and args.documents is None:
        raise InputError("--context-sentences: needs --documents")
    if args.translations is not None:
        useless = [name for name in ("path", "data", *SEARCH) if getattr(args, name) is not None]
        useless += [name for name in ("tokenized", "cpu") if getattr(args, name)]
        useless += [*(["max_tokens"] if args.max_tokens != MAX_TOKENS else []), *given(args, DocumentView)]
        if useless:
            raise InputError(f"{flag_of(useless[0])}: no model is asked where --translations are given; leave one out")
    elif args.path is None or args.data is None:
        raise InputError("give a model with --path and its --data")
    if args.beam is not None and args.beam < 1:
        raise InputError(f"--beam {args.beam}: at least 1")

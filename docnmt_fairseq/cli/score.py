"""Scores translations of a test set: BLEU, chrF, TER and COMET, over sentences and over whole documents.

Figures are sacreBLEU's, each with its signature. Over documents ("d-BLEU", ...) all sentences of a document are one
segment; a document is what the references' empty lines say, however long. The first system is the baseline of tests,
whose p-values are not corrected for the number of comparisons.
"""

import argparse
import logging
from pathlib import Path
from typing import Optional

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.comet import CONTEXT_FROM, CometOptions
from docnmt_fairseq.evaluation.metrics import LEVELS, METRICS, SMOOTHING, MetricOptions
from docnmt_fairseq.evaluation.options import add_output_arguments, write_report
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import ON_EMPTY

HELP = "BLEU, chrF, TER, COMET over sentences and documents; significance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the test set, the systems, the metrics, the tests and the output."""
    texts = parser.add_argument_group("texts", "delimited text: a sentence a line, an empty line ends a document")
    texts.add_argument(
        "--reference", required=True, nargs="+", type=Path, metavar="FILE", help="references, marks on the same lines"
    )
    for option, what in (
        ("--system", "name to show and a translation with the reference's marks; once for each system"),
        ("--log", "the same, but the output of fairseq-generate; ids are line numbers of the reference, from 0"),
    ):
        texts.add_argument(
            option,
            dest="systems",
            action="append",
            type=lambda pair, option=option: (option, pair),
            metavar="NAME=FILE",
            help=what,
        )
    texts.add_argument("--source", type=Path, metavar="FILE", help="source, for COMET")
    texts.add_argument(
        "--on-empty",
        choices=ON_EMPTY,
        default=ON_EMPTY[0],
        help="an empty line of a translation where the reference has a sentence: an error (default), or an empty "
        "translation to score; logs may always hold such",
    )

    metrics = parser.add_argument_group("metrics")
    metrics.add_argument(
        "--metrics",
        nargs="+",
        choices=METRICS,
        default=["bleu", "chrf"],
        help="default: bleu chrf; hter: TER with case, against post-edits; both are slow over long documents (seconds "
        "for 1,000 words, and more than its square)",
    )
    metrics.add_argument("--level", choices=(*LEVELS, "both"), default="both", help="segments (default: both)")
    metrics.add_argument(
        "--tokenize",
        metavar="NAME",
        help="tokeniser of BLEU (default: 13a): zh, ja-mecab, ...; none for published scores over tokens, of texts "
        "tokenised alike (with --smooth none and --level sentence, what multi-bleu.perl computes)",
    )
    metrics.add_argument("--smooth", choices=SMOOTHING, default="exp", help="smoothing of BLEU (default: exp)")
    metrics.add_argument("--lowercase", action="store_true", help="BLEU and chrF without case")

    tests = parser.add_argument_group("significance of differences from the first system")
    tests.add_argument(
        "--test",
        nargs="+",
        choices=TESTS,
        default=[],
        help="bootstrap, randomisation: sacreBLEU's paired tests over the level's segments; documents: paired "
        "bootstrap over whole documents, for scores of either level",
    )
    tests.add_argument(
        "--samples", type=int, metavar="N", help="resamples (default: 1,000) or trials of randomisation (10,000)"
    )
    tests.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"of the tests (default: {SEED})")

    comet = parser.add_argument_group("COMET", "pip install 'docnmt_fairseq[comet]'")
    comet.add_argument("--comet", metavar="MODEL", help="name of a model, or its checkpoint; give --source, too")
    comet.add_argument(
        "--comet-context",
        type=int,
        default=0,
        metavar="N",
        help="doc-COMET: previous sentences that it sees, e.g. 2 (default: 0). Few: what exceeds its encoder is cut",
    )
    comet.add_argument(
        "--comet-context-from",
        choices=CONTEXT_FROM,
        default=CONTEXT_FROM[0],
        help="whose previous sentences a translation gets (default: reference, as Vernikos et al. 2022)",
    )
    comet.add_argument("--comet-batch-size", type=int, default=16, metavar="N", help="sentences (default: 16)")
    comet.add_argument("--gpus", type=int, default=0, metavar="N", help="for COMET (default: 0)")

    add_output_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.evaluation.comet import load_model
    from docnmt_fairseq.evaluation.score_report import ScoreOptions, build_report
    from docnmt_fairseq.evaluation.score_tables import as_markdown, as_text
    from docnmt_fairseq.evaluation.texts import read_log, read_references, read_text

    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # a line for each test of each system
    if not args.systems:
        raise InputError("nothing to score: give --system NAME=FILE or --log NAME=FILE")
    names = split_pairs(args.systems)
    if args.test and len(names) < 2:
        raise InputError("--test compares systems: give at least two")
    options = ScoreOptions(
        metrics=tuple(dict.fromkeys(args.metrics)),
        levels=LEVELS if args.level == "both" else (args.level,),
        metric=MetricOptions(args.tokenize, args.smooth, args.lowercase),
        tests=tuple(dict.fromkeys(args.test)),
        samples=args.samples,
        seed=args.seed,
        comet=_comet_options(args),
    )
    references = read_references(args.reference, args.source)
    streams = {
        name: read_log(Path(file), references) if kind == "--log" else read_text(Path(file), references, args.on_empty)
        for (kind, _), (name, file) in zip(args.systems, names.items())
    }
    model = load_model(options.comet) if options.comet else None
    report = build_report(references, streams, options, model)
    write_report(args, report, as_text, as_markdown)


def _comet_options(args: argparse.Namespace) -> Optional[CometOptions]:
    if args.comet is None:
        if args.comet_context:
            raise InputError("--comet-context: needs --comet")
        return None
    if args.source is None:
        raise InputError("--comet: reads the source, too; give --source")
    for option, value, least in (
        ("--comet-context", args.comet_context, 0),
        ("--comet-batch-size", args.comet_batch_size, 1),
        ("--gpus", args.gpus, 0),
    ):
        if value < least:
            raise InputError(f"{option} {value}: at least {least}")
    return CometOptions(args.comet, args.comet_context, args.comet_context_from, args.comet_batch_size, args.gpus)

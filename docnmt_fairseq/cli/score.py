"""Scores translations of a test set: BLEU, chrF, TER and COMET, over sentences and over whole documents.

BLEU, chrF and TER are sacreBLEU's. Others ask for what needs a document: register, pronouns, terms, repeated words
translated alike. Every figure has its signature. Over documents ("d-BLEU", ...) all sentences of a
document are one segment; a document is what the references' empty lines say, however long. The first system is the
baseline of tests, whose p-values are not corrected for the number of comparisons.
"""

import argparse
from dataclasses import fields
from typing import Dict

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.cli._options import add_options_of, add_output_arguments, write_report
from docnmt_fairseq.cli._systems import TEXTS, add_text_arguments, read_systems
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, MetricOptions
from docnmt_fairseq.evaluation.score_report import DEFAULT_METRICS, ScoreOptions, build_report
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import LEVELS, read_references
from docnmt_fairseq.options import default_of, flag_of, options_of

HELP = "BLEU, chrF, TER, COMET over sentences and documents; register, terms, ...; significance"
QUIET = ("sacrebleu", "eflomal")  # a line for each test of each system, or each alignment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the test set, the systems, the metrics, the tests and the output."""
    add_text_arguments(parser.add_argument_group("texts", TEXTS))
    _add_metrics(parser.add_argument_group("metrics"))
    add_options_of(parser.add_argument_group("options of metrics"), METRICS)
    _add_tests(parser.add_argument_group("significance of differences from the first system"))
    add_output_arguments(parser)


def _add_metrics(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--metrics",
        nargs="+",
        choices=METRICS.names(),
        default=DEFAULT_METRICS,
        help=f"default: {' '.join(DEFAULT_METRICS)}; "
        + "; ".join(f"{name}: {METRICS[name].help}" for name in METRICS.names()),
    )
    group.add_argument("--level", choices=(*LEVELS, "both"), default="both", help="segments (default: both)")


def _add_tests(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--test",
        nargs="+",
        choices=TESTS.names(),
        default=[],
        help="; ".join(f"{name}: {TESTS[name].help}" for name in TESTS.names()),
    )
    defaults = ", ".join(f"{name} {TESTS[name].samples:,}" for name in TESTS.names())
    group.add_argument(
        "--samples", type=int, metavar="N", help=f"resamples, or trials of randomisation (default: {defaults})"
    )
    group.add_argument("--seed", type=int, metavar="N", help=f"of the tests (default: {SEED})")


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.evaluation.score_tables import as_markdown, as_text

    if not args.systems:
        raise InputError("nothing to score: give --system NAME=FILE or --log NAME=FILE")
    names = split_pairs(args.systems)
    if args.test and len(names) < 2:
        raise InputError("--test compares systems: give at least two")
    _check_drawing(args)
    options = ScoreOptions(
        metrics=_chosen_metrics(args),
        levels=LEVELS if args.level == "both" else (args.level,),
        tests=tuple(dict.fromkeys(args.test)),
        samples=args.samples,
        seed=SEED if args.seed is None else args.seed,
    )
    references = read_references(args.reference, args.source)
    report = build_report(references, read_systems(args, references), options)
    write_report(args, report, as_text, as_markdown)


def _check_drawing(args: argparse.Namespace) -> None:
    """Refuses how to draw where nothing is drawn, rather than leave it without effect."""
    if any(TESTS[name].draws for name in args.test):
        return
    for name in ("samples", "seed"):
        if getattr(args, name) is not None:
            tests = ", ".join(test for test in TESTS.names() if TESTS[test].draws)
            raise InputError(
                f"--{name} {getattr(args, name)}: is of tests that draw; add --test {tests}, or leave it out"
            )


def _chosen_metrics(args: argparse.Namespace) -> Dict[str, MetricOptions]:
    """The metrics of ``--metrics`` and those that an option of their own asks for, with what each is told."""
    given = {name: options_of(args, METRICS[name].Options) for name in METRICS.names()}
    asked = [name for name in given if getattr(args, METRICS[name].asked_by or "", None) is not None]
    chosen = {name: given[name] for name in dict.fromkeys([*args.metrics, *asked])}
    served = {known.name for options in chosen.values() for known in fields(options)}
    for name, options in given.items():
        for known in fields(options):
            if known.name not in served and getattr(options, known.name) != default_of(known):
                kinds = f"{'metric' if len(chosen) == 1 else 'metrics'} {', '.join(chosen)}"
                raise InputError(f"{flag_of(known.name)}: is no option of {kinds}; add {name} to --metrics")
    return chosen

"""Scores translations of a test set: BLEU, chrF, TER and COMET, over sentences and over whole documents.

BLEU, chrF and TER are sacreBLEU's. Others ask for what needs a document: register, pronouns, terms, repeated words
translated alike. Every figure has its signature. Over documents ("d-BLEU", ...) all sentences of a
document are one segment; a document is what the references' empty lines say, however long. The first system is the
baseline of tests, whose p-values are not corrected for the number of comparisons.
"""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Callable, Dict, Tuple

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.cli._options import add_options_of, add_output_arguments, write_report
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, MetricOptions
from docnmt_fairseq.evaluation.score_report import DEFAULT_METRICS, ScoreOptions, build_report
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import LEVELS, ON_EMPTY, read_log, read_references, read_text
from docnmt_fairseq.options import default_of, flag_of, options_of

HELP = "BLEU, chrF, TER, COMET over sentences and documents; register, terms, ...; significance"
QUIET = ("sacrebleu", "eflomal")  # a line for each test of each system, or each alignment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the test set, the systems, the metrics, the tests and the output."""
    _add_texts(parser.add_argument_group("texts", "delimited text: a sentence a line, an empty line ends a document"))
    _add_metrics(parser.add_argument_group("metrics"))
    add_options_of(parser.add_argument_group("options of metrics"), METRICS)
    _add_tests(parser.add_argument_group("significance of differences from the first system"))
    add_output_arguments(parser)


def _add_texts(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--reference", required=True, nargs="+", type=Path, metavar="FILE", help="references, marks on the same lines"
    )
    for option, what in (
        ("--system", "name to show and a translation with the reference's marks; once for each system"),
        ("--log", "the same, but the output of fairseq-generate; ids are line numbers of the reference, from 0"),
    ):
        group.add_argument(option, dest="systems", action="append", type=_named(option), metavar="NAME=FILE", help=what)
    group.add_argument("--source", type=Path, metavar="FILE", help="source, for metrics that read it")
    group.add_argument(
        "--on-empty",
        choices=ON_EMPTY,
        default=ON_EMPTY[0],
        help="an empty line of a translation where the reference has a sentence: an error (default), or an empty "
        "translation to score; logs may always hold such",
    )


def _named(option: str) -> Callable[[str], Tuple[str, str]]:
    return lambda pair: (option, pair)


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
    group.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"of the tests (default: {SEED})")


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.evaluation.score_tables import as_markdown, as_text

    if not args.systems:
        raise InputError("nothing to score: give --system NAME=FILE or --log NAME=FILE")
    names = split_pairs(args.systems)
    if args.test and len(names) < 2:
        raise InputError("--test compares systems: give at least two")
    options = ScoreOptions(
        metrics=_chosen_metrics(args),
        levels=LEVELS if args.level == "both" else (args.level,),
        tests=tuple(dict.fromkeys(args.test)),
        samples=args.samples,
        seed=args.seed,
    )
    references = read_references(args.reference, args.source)
    streams = {
        name: read_log(Path(file), references) if kind == "--log" else read_text(Path(file), references, args.on_empty)
        for (kind, _), (name, file) in zip(args.systems, names.items())
    }
    write_report(args, build_report(references, streams, options), as_text, as_markdown)


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

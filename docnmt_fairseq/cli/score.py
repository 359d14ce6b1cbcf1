"""Scores translations of a test set with BLEU, chrF, TER, COMET and document-level metrics.

BLEU, chrF and TER are computed by sacreBLEU over sentences and over whole documents ("d-BLEU", ...), where a document
is one segment; empty lines in the references separate documents. The first system is the baseline of significance
tests; p-values are not corrected for multiple comparisons. --examples shows sentences with different translations.
--synth scores an artificial corpus: BLEU, chrF and the accuracy on context-dependent words.
"""

import argparse
import json
from pathlib import Path
from typing import Callable, Dict, Tuple

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.cli._options import add_fields, add_options_of, add_output_arguments, write_report, write_text
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.examples import ExampleOptions, find_examples
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.score_report import DEFAULT_METRICS, build_report
from docnmt_fairseq.evaluation.segment_scores import OPTION, read_segment_scores
from docnmt_fairseq.evaluation.significance import TESTS, ResamplingOptions
from docnmt_fairseq.evaluation.tables import render
from docnmt_fairseq.evaluation.texts import LEVELS, ON_EMPTY, read_log, read_references, read_text
from docnmt_fairseq.options import options_of

HELP = "BLEU, chrF, TER, COMET over sentences and documents; register, terms, ...; significance, examples"
QUIET = ("sacrebleu", "eflomal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the test set, the systems, the metrics, the tests, the examples and the output."""
    _add_texts(parser)
    metrics = parser.add_argument_group("metrics")
    metrics.add_argument(
        "--metrics",
        nargs="+",
        choices=METRICS.names(),
        default=DEFAULT_METRICS,
        help=f"default: {' '.join(DEFAULT_METRICS)}; "
        + "; ".join(f"{name}: {METRICS[name].help}" for name in METRICS.names()),
    )
    metrics.add_argument("--level", choices=(*LEVELS, "both"), default="both", help="segments (default: both)")
    metrics.add_argument(
        OPTION,
        default=[],
        action="append",
        metavar="METRIC:SYSTEM=FILE",
        help="scores of a system by another program, one number per sentence and line; once for every system",
    )
    metrics.add_argument(
        "--lower-is-better", nargs="+", default=[], metavar="METRIC", help=f"metrics of {OPTION} that are error rates"
    )
    add_options_of(parser.add_argument_group("options of metrics"), METRICS)
    tests = parser.add_argument_group("significance of differences to the first system")
    tests.add_argument(
        "--test",
        nargs="+",
        choices=TESTS.names(),
        default=[],
        help="; ".join(f"{name}: {TESTS[name].help}" for name in TESTS.names()),
    )
    add_fields(tests, ResamplingOptions)
    add_fields(parser.add_argument_group("examples"), ExampleOptions)
    _add_synth(parser.add_argument_group("artificial corpus"))
    add_output_arguments(parser)


def _add_texts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("texts", "delimited text: one sentence per line, an empty line ends a document")
    test_set = group.add_mutually_exclusive_group(required=True)
    test_set.add_argument(
        "--reference", nargs="+", type=Path, metavar="FILE", help="references with boundaries on the same lines"
    )
    test_set.add_argument(
        "--synth",
        type=Path,
        metavar="DIR",
        help="output of docnmt synth; systems are given with --log; --output is a folder for results.json and "
        "accuracy_by_distance.png",
    )
    for option, text in (
        ("--system", "name and translation of a system, with the boundaries of the reference; may be repeated"),
        ("--log", "the same for the output of fairseq-generate; sample ids are line numbers of the reference, from 0"),
    ):
        group.add_argument(
            option, dest="systems", default=[], action="append", type=_named(option), metavar="NAME=FILE", help=text
        )
    group.add_argument("--source", type=Path, metavar="FILE", help="source, for metrics that read it and for examples")
    group.add_argument(
        "--on-empty",
        choices=ON_EMPTY,
        default=ON_EMPTY[0],
        help="an empty line of a --system in place of a sentence is scored as an empty translation (default), or an "
        "error",
    )


def _named(option: str) -> Callable[[str], Tuple[str, str]]:
    return lambda pair: (option, pair)


def _add_synth(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--synth-split", default="test", choices=("valid", "test"), help="translated split (default: test)"
    )
    group.add_argument(
        "--assert-minimum",
        default=[],
        action="append",
        metavar="NAME=SHARE",
        help="fail if the accuracy of the system (0 to 1) is lower on any kind",
    )
    group.add_argument(
        "--assert-ceiling",
        default=[],
        action="append",
        metavar="NAME",
        help="fail if the system exceeds the upper bound of systems without context on any kind",
    )


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    systems = {name: Path(file) for name, file in split_pairs(args.systems).items()}
    resampling, examples = options_of(args, ResamplingOptions), options_of(args, ExampleOptions)
    wants_examples = examples.examples is not None or examples.example_lines
    if len(systems) < (2 if wants_examples else 1):
        raise InputError("--system, --log: give translations as NAME=FILE, at least two of them for --examples")
    if args.synth is not None:
        _score_synth(args, systems)
        return
    references = read_references(args.reference, args.source)
    streams = {
        name: read_log(path, references) if option == "--log" else read_text(path, references, args.on_empty)
        for (option, _), (name, path) in zip(args.systems, systems.items())
    }
    given = split_pairs((OPTION, pair) for pair in args.segment_scores).items()
    more = read_segment_scores(given, references, systems, args.lower_is_better)
    enabled = [name for name in METRICS.names() if getattr(args, METRICS[name].enabled_by or "", None)]
    report = build_report(
        references,
        streams,
        {name: options_of(args, METRICS[name].Options) for name in dict.fromkeys([*args.metrics, *enabled])},
        LEVELS if args.level == "both" else (args.level,),
        tuple(dict.fromkeys(args.test)),
        resampling,
        find_examples(references, streams, examples) if wants_examples else None,
        more,
    )
    write_report(args, report)


def _score_synth(args: argparse.Namespace, logs: Dict[str, Path]) -> None:
    """Prints the tables and writes results and plot, then checks the assertions."""
    from docnmt_fairseq.evaluation.plots import plot_accuracy_by_distance
    from docnmt_fairseq.evaluation.synth_report import build_report as build_synth_report

    report = build_synth_report(args.synth, args.synth_split, logs)
    print(render(report.parts()))
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        results, plot = args.output / "results.json", args.output / "accuracy_by_distance.png"
        write_text(results, json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n")
        ceilings = {kind: figures["accuracy"] for kind, figures in report.ceiling["kinds"].items()}
        plot_accuracy_by_distance({name: one["phenomena"] for name, one in report.systems.items()}, plot, ceilings)
        print("", results, plot, sep="\n")
    for name, minimum in split_pairs(("--assert-minimum", pair) for pair in args.assert_minimum).items():
        report.check_minimum(name, float(minimum))
    for name in args.assert_ceiling:
        report.check_ceiling(name)

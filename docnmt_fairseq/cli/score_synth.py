"""Scores translations of an artificial corpus: BLEU, chrF, and the words that can only be translated from context."""

import argparse
import json
from pathlib import Path

from docnmt_fairseq.cli import split_pairs
from docnmt_fairseq.cli._options import write_text
from docnmt_fairseq.errors import InputError

HELP = "score translations of an artificial corpus, by kind and distance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the corpus, the systems, the folder for results, and the assertions."""
    parser.add_argument("--corpus", required=True, type=Path, metavar="DIR", help="folder that docnmt synth wrote")
    parser.add_argument("--split", default="test", choices=("valid", "test"), help="split translated (default: test)")
    parser.add_argument(
        "--system",
        required=True,
        action="append",
        metavar="NAME=LOG",
        help="name to show and the output of fairseq-generate; once for each system",
    )
    parser.add_argument(
        "--output", required=True, type=Path, metavar="DIR", help="folder for results.json and the plot"
    )
    parser.add_argument(
        "--assert-minimum",
        default=[],
        action="append",
        metavar="NAME=SHARE",
        help="fail if the system is below this accuracy (0 to 1) on any kind",
    )
    parser.add_argument(
        "--assert-ceiling",
        default=[],
        action="append",
        metavar="NAME",
        help="fail if the system is better on any kind than one without context can be by luck",
    )


def run(args: argparse.Namespace) -> None:
    """Prints the tables, writes the results, then checks the assertions."""
    from docnmt_fairseq.evaluation.plots import plot_accuracy_by_distance
    from docnmt_fairseq.evaluation.synth_report import build_report, check_ceiling, check_minimum, format_report

    logs = {name: Path(log) for name, log in split_pairs(("--system", pair) for pair in args.system).items()}
    pairs = split_pairs(("--assert-minimum", pair) for pair in args.assert_minimum)
    minimums = {name: _share(name, text) for name, text in pairs.items()}
    for name in [*minimums, *args.assert_ceiling]:  # before the work, not after it
        if name not in logs:
            raise InputError(f"an assertion names '{name}', which is not a --system; they are {', '.join(logs)}")
    report = build_report(args.corpus, args.split, logs)

    args.output.mkdir(parents=True, exist_ok=True)
    results, picture = args.output / "results.json", args.output / "accuracy_by_distance.png"
    write_text(results, json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n")
    ceilings = {kind: figures["accuracy"] for kind, figures in report.ceiling["kinds"].items()}
    plot_accuracy_by_distance({name: result.accuracy for name, result in report.systems.items()}, picture, ceilings)
    print(format_report(report), "", results, picture, sep="\n")

    for name, minimum in minimums.items():
        check_minimum(report, name, minimum)
    for name in args.assert_ceiling:
        check_ceiling(report, name)


def _share(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(f"--assert-minimum {name}={text}: expected a share from 0 to 1")
    return share

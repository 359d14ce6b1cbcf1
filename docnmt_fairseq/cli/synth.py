"""Writes a parallel corpus of two artificial languages in which some words can only be translated from context."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from docnmt_fairseq.cli._options import add_fields
from docnmt_fairseq.corpus.synth import SynthOptions, write_corpus

HELP = "write an artificial corpus that needs document context"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the output folder and the options of ``SynthOptions``."""
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="output folder")
    add_fields(parser, SynthOptions)


def run(args: argparse.Namespace) -> None:
    """Writes the corpus, then prints its content, the ceilings without context and the folder."""
    given = {known.name: getattr(args, known.name) for known in fields(SynthOptions)}
    options: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    reports = write_corpus(SynthOptions(**options), args.output)
    for split, report in reports.items():
        words = ", ".join(f"{kind} {count}" for kind, count in sorted(report.words.items()))
        tokens, types = " → ".join(map(str, report.tokens)), " → ".join(str(len(words)) for words in report.types)
        print(
            f"{split}: {report.documents} documents, {report.sentences} sentences, tokens {tokens}, types {types}, "
            f"undecidable: {words} ({sum(report.words.values()) / report.documents:.1f} a document)"
        )
    for split in ("valid", "test"):
        found = reports[split].ceiling
        for name, figures in [*found["kinds"].items(), ("overall", found["overall"])]:
            print(
                f"{split}: ceiling without context {100 * figures['accuracy']:.1f} % {name}, "
                f"upper bound {100 * figures['upper_bound']:.1f} %"
            )
    print(args.output)

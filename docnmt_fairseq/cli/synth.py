"""Writes a parallel corpus of two artificial languages in which some words can only be translated from context."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict

from docnmt_fairseq.options import flag_of

HELP = "write an artificial corpus that needs document context"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds one option for every field of ``SynthOptions``, and the folder to write to."""
    from docnmt_fairseq.corpus.synth.language import KINDS, SynthOptions

    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder to write to")
    for setting in fields(SynthOptions):
        shown = " ".join(map(str, setting.default)) if isinstance(setting.default, tuple) else setting.default
        extra: Dict[str, Any] = {"default": setting.default, "help": f"{setting.metadata['help']} (default: {shown})"}
        if setting.name == "kinds":
            extra.update(nargs="+", choices=KINDS, metavar="KIND")
        elif isinstance(setting.default, tuple):
            extra.update(nargs=2, type=int, metavar=("MIN", "MAX"))
        elif isinstance(setting.default, int):
            extra.update(type=int, metavar="N")
        else:
            extra.update(metavar="SUFFIX")
        parser.add_argument(flag_of(setting.name), **extra)


def run(args: argparse.Namespace) -> None:
    """Writes the corpus, then prints what it holds, the ceilings without context and the folder."""
    from docnmt_fairseq.corpus.synth import SynthOptions, write_corpus

    given = {setting.name: getattr(args, setting.name) for setting in fields(SynthOptions)}
    settings: Dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    report = write_corpus(SynthOptions(**settings), args.output)
    for split, held in report.statistics.items():
        words = ", ".join(f"{kind} {count}" for kind, count in sorted(held.words.items()))
        print(
            f"{split}: {held.documents} documents, {held.sentences} sentences, tokens {held.source_tokens} → "
            f"{held.target_tokens}, types {len(held.source_types)} → {len(held.target_types)}, undecidable: {words} "
            f"({sum(held.words.values()) / held.documents:.1f} a document)"
        )
    for split, found in report.ceilings.items():
        for name, figures in [*found["kinds"].items(), ("overall", found["overall"])]:
            print(
                f"{split}: without context at best {100 * figures['accuracy']:.1f} % {name}, "
                f"by luck {100 * figures['upper_bound']:.1f} %"
            )
    print(args.output)

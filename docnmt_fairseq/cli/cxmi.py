"""Measures how much context helps a model on the references of a test set (CXMI, Fernandes et al. 2021, 2023).

CXMI is the gain in log-probability of the references with context over no context, for the true documents and for false
ones, which should not help. Tokens with the largest gain (P-CXMI) are listed.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from docnmt_fairseq.cli._options import add_fields, add_model_arguments, add_output_arguments, load_models, write_report
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.significance import IntervalOptions
from docnmt_fairseq.options import option, options_of

HELP = "context usage of a model: CXMI with true, false and no context"


@dataclass(frozen=True)
class CxmiOptions(IntervalOptions):
    """Options of the measurement; the seed is also that of sample and false context."""

    sentences: int = option(0, "size of a random sample, since false context is slow; 0: all", minimum=0)
    tokens: int = option(20, "number of listed tokens", minimum=0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the test set, the measurement and the output."""
    add_model_arguments(parser)
    texts = parser.add_argument_group(
        "test set", "delimited text: one sentence per line, an empty line ends a document"
    )
    texts.add_argument("--source", type=Path, metavar="FILE", help="source, with the boundaries of the reference")
    texts.add_argument("--reference", type=Path, metavar="FILE", help="reference")
    texts.add_argument(
        "--split", default="test", metavar="NAME", help="otherwise a split of docnmt prepare (default: test)"
    )
    add_fields(parser.add_argument_group("measurement"), CxmiOptions)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.evaluation.cxmi import measure, read_test_set
    from docnmt_fairseq.evaluation.cxmi_report import build_report
    from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder

    options = options_of(args, CxmiOptions)
    source, reference = args.source, args.reference
    if (source is None) != (reference is None):
        raise InputError("--source, --reference: give both, or a split of docnmt prepare with --split")
    ensemble, codec = load_models(args)
    if source is None:
        source, reference = (ensemble.data / "text" / f"{args.split}.{language}" for language in ensemble.languages)
    test_set = read_test_set(source, reference, ensemble, codec)
    measured = measure(test_set, ForcedDecoder(ensemble, args.max_tokens), options.sentences, options.seed)
    about = {"source": str(source), "reference": str(reference), "model": args.path}
    write_report(args, build_report(test_set, measured, ensemble.dictionaries[1], about, options.tokens, options))

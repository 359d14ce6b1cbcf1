"""Measures how much context helps a model with the references of a test set (CXMI, Fernandes et al. 2021, 2023).

One model is asked for the references' probability with their true documents, with false ones, and without any.
CXMI is the gain in log-probability over no context; false context should bring none. Tokens are listed by their own
gain (P-CXMI).
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._options import add_model_arguments, add_output_arguments, load_models, write_report
from docnmt_fairseq.errors import InputError

HELP = "how much a model uses context: CXMI with true, false and no context"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model, the test set, the measuring and the output."""
    add_model_arguments(parser)
    texts = parser.add_argument_group("test set", "delimited text: a sentence a line, an empty line ends a document")
    texts.add_argument("--source", type=Path, metavar="FILE", help="source, marks as in the reference")
    texts.add_argument("--reference", type=Path, metavar="FILE", help="reference")
    texts.add_argument("--split", metavar="NAME", help="instead: of what docnmt prepare wrote, test, valid, …")
    measuring = parser.add_argument_group("measuring")
    measuring.add_argument(
        "--sentences", type=int, default=0, metavar="N", help="a random sample; false context is slow (default: all)"
    )
    measuring.add_argument("--tokens", type=int, default=20, metavar="N", help="listed at most (default: 20)")
    measuring.add_argument("--samples", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1,000)")
    measuring.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of sample, false context and bootstrap (default: 1)"
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> None:
    """Prints or writes the report."""
    from docnmt_fairseq.evaluation.context_use.corpus import read_test_set
    from docnmt_fairseq.evaluation.context_use.cxmi import measure
    from docnmt_fairseq.evaluation.context_use.report import as_markdown, as_text, build_report, check_options
    from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder

    check_options(args.tokens, args.samples, args.seed)  # before the work, not after it
    given = (args.source is not None, args.reference is not None)
    if (any(given) and args.split is not None) or (args.split is None and not all(given)):
        raise InputError("give --source and --reference, or --split")
    ensemble, codec = load_models(args)
    source, reference = args.source, args.reference
    if args.split is not None:
        source, reference = (ensemble.data / "text" / f"{args.split}.{language}" for language in ensemble.languages)
        if not source.is_file():
            raise InputError(f"--split {args.split}: no {source}; --data must be what docnmt prepare wrote")
    test_set = read_test_set(source, reference, ensemble, codec)
    measured = measure(test_set, ForcedDecoder(ensemble, args.max_tokens), args.sentences, args.seed)
    about = {"source": str(source), "reference": str(reference), "model": args.path}
    report = build_report(test_set, measured, ensemble.dictionaries[1], about, args.tokens, args.samples, args.seed)
    write_report(args, report, as_text, as_markdown)

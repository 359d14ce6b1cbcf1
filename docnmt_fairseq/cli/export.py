"""Exports a trained model for inference: a checkpoint without training state, CTranslate2, Hugging Face."""

import argparse
from pathlib import Path

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub import formats  # noqa: F401  (registers them)
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS, export, size_of
from docnmt_fairseq.hub.model_card import CardOptions, parse_metrics

HELP = "export a trained model: a checkpoint for inference, CTranslate2, Hugging Face"
QUIET = ("fairseq",)
EXAMPLES = """examples:
  docnmt export --path work/document/checkpoint_best.pt --data work --output document.pt
  docnmt export --path work/sentence/checkpoint_best.pt --data work --format ctranslate2 --output sentence.ct2
  docnmt export --path work/document/checkpoint_best.pt --data work --format huggingface \\
      --without-context --output hub"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds model, format and output."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--path", required=True, metavar="FILE", help="checkpoint")
    parser.add_argument(
        "--data", type=Path, metavar="DIR",
        help="output folder of docnmt prepare, or data-bin (default: that of the training)",
    )  # fmt: skip
    parser.add_argument("--output", required=True, type=Path, metavar="PATH", help="output file or folder")
    kinds = "; ".join(f"{name}: {EXPORT_FORMATS[name].help}" for name in EXPORT_FORMATS.names())
    parser.add_argument(
        "--format", choices=EXPORT_FORMATS.names(), default="fairseq", help=f"{kinds} (default: fairseq)"
    )
    parser.add_argument(
        "--precision", choices=("float32", "bf16", "int8"), default="float32",
        help="precision of the weights, bf16: huggingface or ctranslate2, int8: ctranslate2 (default: float32)",
    )  # fmt: skip
    parser.add_argument(
        "--without-context",
        action="store_true",
        help="export the sentence-level part of a document model (huggingface, ctranslate2)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing export")
    hub = parser.add_argument_group("Hugging Face hub")
    hub.add_argument(
        "--push", metavar="OWNER/MODEL", help="upload the export with a model card; creates the repository"
    )
    hub.add_argument("--private", action="store_true", help="a new repository is private")
    hub.add_argument(
        "--license", metavar="ID", help="licence of the card, such as apache-2.0 (default: that of the imported model)"
    )
    hub.add_argument("--metric", nargs="+", default=[], metavar="NAME=VALUE", help="scores of the card")
    hub.add_argument("--test-set", default="test", metavar="NAME", help="test set of these scores (default: test)")


def run(args: argparse.Namespace) -> None:
    """Exports the model and prints its size."""
    card = CardOptions(args.license, parse_metrics(args.metric), args.test_set)
    if not args.push and (args.private or card != CardOptions()):
        raise InputError("--private, --license, --metric, --test-set: describe the repository of --push; give --push")
    export(
        args.path, args.output, args.format, args.precision, args.data, args.force, args.without_context,
        args.push, args.private, card,
    )  # fmt: skip
    print(f"{args.output}: {size_of(args.output) / 1e6:,.1f} MB")
    if args.push:
        print(f"uploaded to https://huggingface.co/{args.push}")

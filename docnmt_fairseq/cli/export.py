"""Exports a trained model for inference: a checkpoint without training state, CTranslate2, Hugging Face."""

import argparse
from pathlib import Path

from docnmt_fairseq.hub import formats  # noqa: F401  (registers them)
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS

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


def run(args: argparse.Namespace) -> None:
    """Exports the model and prints its size."""
    from docnmt_fairseq.hub.exporting import export, size_of

    export(args.path, args.output, args.format, args.precision, args.data, args.force, args.without_context)
    print(f"{args.output}: {size_of(args.output) / 1e6:,.1f} MB")

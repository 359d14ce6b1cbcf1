"""Writes a trained model in a form that is only good for translating.

The result has no state of the training. For CTranslate2 and Hugging Face its weights can have fewer bits.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.export.formats import EXPORT_FORMATS

HELP = "a trained model for inference: without training state, for CTranslate2, for Hugging Face"
QUIET = ("fairseq",)
EXAMPLES = """examples:
  docnmt export --path work/document/checkpoint_best.pt --data work --output document.pt
  docnmt export --path work/sentence/checkpoint_best.pt --data work --format ctranslate2 --output sentence.ct2
  docnmt export --path work/document/checkpoint_best.pt --data work --format huggingface \\
      --without-context --output hub"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the model and what becomes of it."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--path", required=True, metavar="FILE", help="checkpoint")
    parser.add_argument(
        "--data", type=Path, metavar="DIR",
        help="folder that docnmt prepare wrote, or a data-bin (default: the model's own)",
    )  # fmt: skip
    parser.add_argument("--output", required=True, type=Path, metavar="PATH", help="file or folder to write")
    kinds = "; ".join(f"{name}: {EXPORT_FORMATS[name].help}" for name in EXPORT_FORMATS.names())
    parser.add_argument(
        "--format", choices=EXPORT_FORMATS.names(), default="fairseq", help=f"{kinds} (default: fairseq)"
    )
    parser.add_argument(
        "--precision", choices=("float32", "bf16", "int8"),
        help="precision of the weights, for other formats than fairseq (default: float32)",
    )  # fmt: skip
    parser.add_argument(
        "--without-context", action="store_true",
        help="of a document model only the sentence-level model inside, without what context adds to it; other "
        "formats than fairseq",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an export that is there already")


def run(args: argparse.Namespace) -> None:
    """Exports, and prints where and how large that is."""
    from docnmt_fairseq.export.write import export, size_of

    export(args.path, args.output, args.format, args.precision, args.data, args.force, args.without_context)
    print(f"{args.output}: {size_of(args.output) / 1e6:,.1f} MB")

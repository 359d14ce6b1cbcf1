"""Exports a trained model for inference: a checkpoint without training state, CTranslate2, Hugging Face."""

import argparse

from docnmt_fairseq.cli._options import add_groups, given
from docnmt_fairseq.hub import formats  # noqa: F401  (registers them)
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS, ExportOptions, export, size_of
from docnmt_fairseq.hub.publishing import CardOptions

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
    described = [f"  {name}: {EXPORT_FORMATS[name].help}" for name in EXPORT_FORMATS.names()]
    parser.epilog = "\n".join(["formats:", *described, "", EXAMPLES])
    add_groups(parser, ExportOptions, CardOptions)


def run(args: argparse.Namespace) -> None:
    """Exports the model and prints its size."""
    export(ExportOptions(**given(args, ExportOptions), card=CardOptions(**given(args, CardOptions))))
    print(f"{args.output}: {size_of(args.output) / 1e6:,.1f} MB")
    if args.push:
        print(f"uploaded to https://huggingface.co/{args.push}")

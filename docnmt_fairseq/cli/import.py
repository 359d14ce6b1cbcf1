"""Imports a pretrained model into a folder that docnmt and fairseq can use.

SOURCE is a folder in the format of the Hugging Face hub (config.json, model.safetensors or pytorch_model.bin,
vocabulary, subword models), a checkpoint of fairseq with its dictionaries next to it, or a name on the hub
(OWNER/MODEL), which is downloaded. No code of the model is executed. The output has checkpoint.pt, subword models and
dictionaries (models/, data-bin/) and manifest.json: architecture, languages, stated licence, hashes of the files.
"""

import argparse
import shlex

from docnmt_fairseq.cli._options import add_groups, given
from docnmt_fairseq.corpus.prepared import CHECKPOINT
from docnmt_fairseq.hub.base import ImportOptions

HELP = "import a pretrained model: OPUS-MT, M2M-100, NLLB, mBART-50, checkpoints of fairseq"
QUIET = ("fairseq", "hydra")
EXAMPLES = """examples:
  docnmt import Helsinki-NLP/opus-mt-en-de -s en -t de --output pretrained
  docnmt import facebook/nllb-200-distilled-600M -s en -t de --source-code eng_Latn --target-code deu_Latn --output nllb
  docnmt import wmt19.en-de/model1.pt -s en -t de --output pretrained
  docnmt prepare --reuse pretrained -s en -t de --train my/train --valid my/valid --test my/test --output work"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds source, languages and output."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("source", metavar="SOURCE", help="folder, checkpoint of fairseq, or OWNER/MODEL on the hub")
    add_groups(parser, ImportOptions)


def run(args: argparse.Namespace) -> None:
    """Imports the model; prints its family, licence and a command to translate."""
    from docnmt_fairseq.hub.importing import import_model

    imported = import_model(args.source, ImportOptions(**given(args, ImportOptions)))["imported"]
    print(f"family: {imported['family']}; stated licence: {imported['licence'] or 'none'}")
    print(args.output)
    command = ["docnmt", "translate", "--path", str(args.output / CHECKPOINT), "--data", str(args.output)]
    print(shlex.join(command))

"""Imports a pretrained model into a folder that docnmt and fairseq can use.

SOURCE is a folder in the format of the Hugging Face hub (config.json, model.safetensors or pytorch_model.bin,
vocabulary, subword models), a checkpoint of fairseq with its dictionaries next to it, or a name on the hub
(OWNER/MODEL), which is downloaded. No code of the model is executed. The output has checkpoint.pt, subword models and
dictionaries (models/, data-bin/) and manifest.json: architecture, languages, stated licence, hashes of the files.
"""

import argparse
import shlex
from pathlib import Path

from docnmt_fairseq.corpus.prepared import CHECKPOINT
from docnmt_fairseq.corpus.tokenizers import TOKENIZERS

HELP = "import a pretrained model: OPUS-MT, M2M-100, NLLB, mBART-50, checkpoints of fairseq"
QUIET = ("fairseq", "hydra")
ARCHITECTURES = ("document_transformer", "transformer")
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
    parser.add_argument(
        "--source-lang", "-s", required=True, metavar="LANG", help="source language, used in file suffixes"
    )
    parser.add_argument("--target-lang", "-t", required=True, metavar="LANG", help="target language")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="output folder")
    parser.add_argument(
        "--source-code", metavar="CODE", help="name of the source language in the model, e.g. eng_Latn (default: LANG)"
    )
    parser.add_argument("--target-code", metavar="CODE", help="name of the target language in the model")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit on the hub (default: main)")
    parser.add_argument(
        "--architecture",
        choices=ARCHITECTURES,
        default=ARCHITECTURES[0],
        help="architecture of the checkpoint; transformer: fairseq's own, which needs no plugin, if it computes the "
        "same (default: document_transformer)",
    )
    stock = parser.add_argument_group("checkpoints of fairseq")
    stock.add_argument(
        "--subwords",
        type=Path,
        metavar="FILE",
        help="SentencePiece model (.model, .spm) or BPE codes (default: next to the checkpoint)",
    )
    stock.add_argument(
        "--tokenizer",
        choices=TOKENIZERS,
        help="tokenizer before subwords (default: moses-escaped with BPE codes, otherwise none)",
    )


def run(args: argparse.Namespace) -> None:
    """Imports the model; prints its family, licence and a command to translate."""
    from docnmt_fairseq.hub.importing import import_model

    manifest = import_model(
        args.source,
        (args.source_lang, args.target_lang),
        args.output,
        (args.source_code, args.target_code),
        args.revision,
        args.architecture,
        args.subwords,
        args.tokenizer,
    )
    imported = manifest["imported"]
    print(f"family: {imported['family']}; stated licence: {imported['licence'] or 'none'}")
    print(args.output)
    command = ["docnmt", "translate", "--path", str(args.output / CHECKPOINT), "--data", str(args.output)]
    print(shlex.join(command))

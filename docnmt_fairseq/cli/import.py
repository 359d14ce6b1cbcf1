"""Imports a released pretrained model: afterwards it is a folder that docnmt and fairseq understand.

SOURCE is a folder as the hub has it (config.json, model.safetensors or pytorch_model.bin, vocabulary, subword models),
a checkpoint of fairseq with its dictionaries beside it, or a name of the hub (OWNER/MODEL), from which it is fetched.
Nothing in it is executed. The folder then holds checkpoint.pt, subword models and dictionaries (models/, data-bin/) and
manifest.json: architecture, languages, licence as stated, and hashes of what was read.
"""

import argparse
import shlex
from pathlib import Path

from docnmt_fairseq.corpus.prepared import CHECKPOINT
from docnmt_fairseq.corpus.tokenizers import TOKENIZERS

HELP = "released pretrained models (OPUS-MT, M2M-100, NLLB, mBART-50, fairseq's own) as models of this package"
QUIET = ("fairseq", "hydra")  # importing it logs what it would like to have installed
ARCHITECTURES = ("document_transformer", "transformer")
EXAMPLES = """examples:
  docnmt import Helsinki-NLP/opus-mt-en-de -s en -t de --output pretrained
  docnmt import facebook/nllb-200-distilled-600M -s en -t de --source-code eng_Latn --target-code deu_Latn --output nllb
  docnmt import wmt19.en-de/model1.pt -s en -t de --output pretrained
  docnmt prepare --reuse pretrained -s en -t de --train my/train --valid my/valid --test my/test --output work"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds what is imported, and where to."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("source", metavar="SOURCE", help="folder, checkpoint of fairseq, or OWNER/MODEL of the hub")
    parser.add_argument(
        "--source-lang", "-s", required=True, metavar="LANG", help="source language, as in file suffixes"
    )
    parser.add_argument("--target-lang", "-t", required=True, metavar="LANG", help="target language")
    parser.add_argument("--output", required=True, type=Path, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--source-code", metavar="CODE", help="what the model calls the source language, e.g. eng_Latn (default: LANG)"
    )
    parser.add_argument("--target-code", metavar="CODE", help="the same of the target language")
    parser.add_argument("--revision", metavar="NAME", help="of the hub: branch, tag or commit (default: main)")
    parser.add_argument(
        "--architecture",
        choices=ARCHITECTURES,
        default=ARCHITECTURES[0],
        help="of the checkpoint; transformer: fairseq's own, which needs no plugin, where that computes the same "
        "(default: document_transformer)",
    )
    stock = parser.add_argument_group("checkpoints of fairseq")
    stock.add_argument(
        "--subwords",
        type=Path,
        metavar="FILE",
        help="SentencePiece model (.model, .spm) or BPE codes (default: found beside the checkpoint)",
    )
    stock.add_argument(
        "--tokenizer", choices=TOKENIZERS, help="before subwords (default: moses-escaped with BPE codes, else none)"
    )


def run(args: argparse.Namespace) -> None:
    """Imports, then prints what it is and how to go on."""
    from docnmt_fairseq.pretrained.importing import import_model
    from docnmt_fairseq.pretrained.released import Request

    languages = (args.source_lang, args.target_lang)
    request = Request(Path(args.source), languages, (args.source_code, args.target_code), args.subwords, args.tokenizer)
    manifest = import_model(args.source, request, args.output, args.revision, args.architecture)
    imported = manifest["imported"]
    print(f"family: {imported['family']}; licence as stated: {imported['licence'] or 'none found'}")
    print(args.output)
    command = ["docnmt", "translate", "--path", str(args.output / CHECKPOINT), "--data", str(args.output)]
    print(shlex.join(command))

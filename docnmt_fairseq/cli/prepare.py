"""Makes a data-bin for fairseq from native corpora.

Reads and checks the corpora, normalises (tokenises, truecases) them, splits them into subwords and runs
fairseq-preprocess. Below the output folder, text/ holds the text to score against, models/ what a later --reuse takes,
data-bin/ what fairseq-train reads, manifest.json what was done. Run again, only what changed is redone.
"""

import argparse
import os
import shlex
import textwrap
from dataclasses import fields
from pathlib import Path

import docnmt_fairseq
from docnmt_fairseq.cli._options import add_options_of
from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.binarise import DATA_BIN
from docnmt_fairseq.corpus.config import AND, MODEL_OPTIONS, PrepareConfig, config_of
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.sides import LIKE_SOURCE, MODELS
from docnmt_fairseq.corpus.subwords import KINDS, NORMALIZATIONS
from docnmt_fairseq.corpus.text import ON_EMPTY
from docnmt_fairseq.corpus.tokenizers import TOKENIZERS
from docnmt_fairseq.errors import InputError

HELP = "corpora to a data-bin: read, normalise, split into subwords, binarise"
QUIET = ("fairseq",)  # importing it logs what it would like to have installed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options; those left out take the defaults of ``PrepareConfig``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # keeps the lines of the list of formats
    parser.epilog = "formats:\n" + "\n".join(map(_format_help, readers.READERS.names()))
    _add_inputs(parser.add_argument_group("input"))
    add_options_of(parser.add_argument_group("options of formats"), readers.READERS, unset=True)
    _add_text(parser.add_argument_group("text"))
    _add_post_editing(parser.add_argument_group("automatic post-editing"))
    _add_subwords(parser.add_argument_group("subwords"))
    output = parser.add_argument_group("output")
    output.add_argument("--output", required=True, metavar="DIR", help="folder to write; run again to go on")
    output.add_argument("--workers", type=int, metavar="N", help="processes (default: all available)")


def _add_inputs(group: argparse._ArgumentGroup) -> None:
    names = readers.READERS.names()
    group.add_argument(
        "--source-lang", "-s", required=True, metavar="LANG", help="source language, as in file suffixes"
    )
    group.add_argument("--target-lang", "-t", required=True, metavar="LANG", help="target language")
    group.add_argument(
        "--train",
        nargs="+",
        metavar="PREFIX_OR_FILE",
        help=f"training corpus, see --format; several corpora with {AND} between become one split, here and below",
    )
    for split in ("valid", "test"):
        group.add_argument(
            f"--{split}",
            nargs="+",
            action="append",
            metavar="PREFIX_OR_FILE",
            help=f"{split} set; given again, further sets are named {split}1, {split}2, ...",
        )
    group.add_argument(
        "--format", choices=names, metavar="FORMAT", help="format of all files, see below (default: delimited)"
    )
    for split in ("train", "valid", "test"):
        group.add_argument(
            f"--{split}-format", choices=names, metavar="FORMAT", help=f"format of --{split}, where it differs"
        )
    group.add_argument(
        "--extra",
        "--further",
        nargs="+",
        metavar="SUFFIX",
        help="extra text of every line, for --extra-sources text:SUFFIX: files PREFIX.SUFFIX of "
        f"{' or '.join(name for name in names if readers.READERS[name].line_aligned)} text, or given after those of "
        f"source and target; "
        f"SUFFIX={'|'.join(MODELS)}: whose tokenizer, subwords and dictionary (default: {LIKE_SOURCE})",
    )
    group.add_argument(
        "--reuse", metavar="DIR", help="an earlier output whose models, dictionaries and their options are taken"
    )


def _format_help(name: str) -> str:
    """Returns what a format is and what ``--train``, ``--valid`` and ``--test`` take, as lines."""
    reader = readers.READERS[name]
    lines = [*textwrap.wrap(reader.help, 76), *textwrap.wrap(f"takes {reader.files}", 76)]
    return "\n".join([f"  {name}", *(f"    {line}" for line in lines)])


def _add_text(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--on-empty", choices=ON_EMPTY, help="sentence pairs with an empty side (default: error)")
    group.add_argument(
        "--tokenizer", choices=TOKENIZERS, help="moses: through sacremoses; jieba: Chinese words (default: none)"
    )
    for side in ("source", "target"):
        group.add_argument(f"--{side}-tokenizer", choices=TOKENIZERS, help=f"tokenizer of the {side}, where it differs")
    group.add_argument(
        "--truecase", action="store_true", default=None, help="Moses truecasing, learnt from --train; not after jieba"
    )


def _add_subwords(group: argparse._ArgumentGroup) -> None:
    default = {field.name: field.default for field in fields(PrepareConfig)}
    group.add_argument("--subwords", choices=KINDS, help="none: the text is already split (default: unigram)")
    group.add_argument(
        "--vocab-size", type=int, metavar="N", help=f"pieces of a model (default: {default['vocab_size']})"
    )
    group.add_argument(
        "--separate",
        dest="joint",
        action="store_false",
        default=None,
        help="one subword model and dictionary a language (default: one joint)",
    )
    group.add_argument(
        "--character-coverage",
        type=float,
        metavar="SHARE",
        help=f"share of characters that get a piece, in (0, 1] (default: {default['character_coverage']})",
    )
    group.add_argument("--normalization", choices=NORMALIZATIONS, help="of SentencePiece (default: nmt_nfkc)")
    group.add_argument(
        "--subword-model", nargs="+", metavar="FILE", help="SentencePiece model to use: one joint, or source and target"
    )
    group.add_argument(
        "--min-count", type=int, metavar="N", help="--subwords none: rarer words become <unk> (default: 1)"
    )
    group.add_argument(
        "--max-words", type=int, metavar="N", help="--subwords none: size of a dictionary (default: all)"
    )
    group.add_argument(
        "--seed", type=int, metavar="N", help="of subword training on a sample of a large corpus (default: 1)"
    )


def _add_post_editing(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--edits-of",
        metavar="SIDE",
        help="the source language or the --extra text that holds machine translations, which the target post-edits: "
        "targets become edit operations (keep, delete, or a subword to insert)",
    )


def config_from(args: argparse.Namespace) -> PrepareConfig:
    """Returns the configuration of a command line.

    Raises:
        InputError: an option that ``--reuse`` settles was given too.
    """
    names = {*(field.name for field in fields(PrepareConfig)), *readers.all_options()}
    given = {name: value for name, value in vars(args).items() if name in names and value is not None}
    settled = [
        f"--{'separate' if name == 'joint' else name.replace('_', '-')}" for name in MODEL_OPTIONS if name in given
    ]
    if "reuse" in given and settled:
        raise InputError(f"--reuse takes the earlier output's options: leave out {', '.join(settled)}")
    if "subword_model" in given:
        given.setdefault("joint", len(given["subword_model"]) == 1)
    # Not every system can say which processors this process may use.
    given.setdefault(
        "workers", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return config_of(given)


def run(args: argparse.Namespace) -> None:
    """Prepares, and prints the data-bin's path and the command that trains on it."""
    config = config_from(args)
    manifest = prepare(config)
    for split, counts in manifest["counts"].items():
        words = " + ".join(f"{count} {language}" for language, count in counts["words"].items())
        print(f"{split}: {counts['documents']} documents, {counts['sentences']} sentences, {words} words")
    data_bin = Path(config.output) / DATA_BIN
    print(data_bin)
    if "train" in manifest["counts"]:
        plugin = Path(docnmt_fairseq.__file__).parent
        command = ["fairseq-train", str(data_bin), "--user-dir", str(plugin), "--task", "document_translation"]
        command += ["--arch", "document_transformer_iwslt"]
        command += ["--source-lang", config.source_lang, "--target-lang", config.target_lang]
        print(shlex.join(command))

"""Makes a data-bin for fairseq from native corpora.

Reads and checks the corpora, normalises (tokenises, truecases) them, splits them into subwords and writes the numbers
of these. Below the output folder, text/ holds the text to score against, models/ what a later --reuse takes, data-bin/
what fairseq-train reads, manifest.json what was done. Run again, only what changed is redone.

With --shards N, the documents of --train are divided among N data-bins.
"""

import argparse
import os
import shlex
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import List

import docnmt_fairseq
from docnmt_fairseq.cli._options import add_options_of
from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import SAMPLED, PrepareConfig, config_of
from docnmt_fairseq.corpus.prepare import alone_in, finish, fit
from docnmt_fairseq.corpus.prepared import CHECKPOINT, imported_from
from docnmt_fairseq.corpus.reusing import MODEL_OPTIONS
from docnmt_fairseq.corpus.sides import LIKE_SOURCE, MODELS
from docnmt_fairseq.corpus.splits import AND
from docnmt_fairseq.corpus.subwords import KINDS, LEAST_COVERAGE, NORMALIZATIONS, without_effect
from docnmt_fairseq.corpus.text import ON_EMPTY
from docnmt_fairseq.corpus.tokenizers import TOKENIZERS
from docnmt_fairseq.errors import InputError, refuse

STEPS = ["--max-tokens", "4096", "--optimizer", "adam", "--lr-scheduler", "inverse_sqrt"]
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
    _add_shards(parser.add_argument_group("large corpora"))


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
        nargs="+",
        metavar="SUFFIX",
        help="extra text of every line, for --extra-sources text:SUFFIX: files PREFIX.SUFFIX of "
        f"{' or '.join(name for name in names if readers.READERS[name].line_aligned)} text, or given after those of "
        f"source and target; "
        f"SUFFIX={'|'.join(MODELS)}: whose tokenizer, subwords and dictionary (default: {LIKE_SOURCE})",
    )
    group.add_argument(
        "--reuse",
        "--from",
        metavar="DIR",
        help="an earlier output, or an imported model, whose subword models, dictionaries and their options are taken",
    )


def _format_help(name: str) -> str:
    """What a format is and what ``--train``, ``--valid`` and ``--test`` take, as lines."""
    reader = readers.READERS[name]
    lines = [*textwrap.wrap(reader.help, 76), *textwrap.wrap(f"takes {reader.files}", 76)]
    return "\n".join([f"  {name}", *(f"    {line}" for line in lines)])


def _add_text(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--on-empty", choices=ON_EMPTY, help="sentence pairs with an empty side (default: error)")
    group.add_argument(
        "--tokenizer",
        choices=TOKENIZERS,
        help="moses: through sacremoses; moses-escaped: the same as fairseq's released models have it; jieba: Chinese "
        "words (default: none)",
    )
    for side in ("source", "target"):
        group.add_argument(f"--{side}-tokenizer", choices=TOKENIZERS, help=f"tokenizer of the {side}, where it differs")
    group.add_argument(
        "--truecase", action="store_true", default=None, help="Moses truecasing, learnt from --train; not after jieba"
    )


def _add_subwords(group: argparse._ArgumentGroup) -> None:
    default = {field.name: field.default for field in fields(PrepareConfig)}
    group.add_argument(
        "--subwords",
        choices=KINDS,
        help="unigram and bpe: SentencePiece's; subword-nmt: merges inside words (extra bpe); none: the text is "
        "already split (default: unigram)",
    )
    group.add_argument(
        "--vocab-size",
        type=int,
        metavar="N",
        help=f"pieces of a model, or merges of subword-nmt (default: {default['vocab_size']})",
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
        help=f"share of characters that get a piece, {LEAST_COVERAGE} to 1 (default: {default['character_coverage']})",
    )
    group.add_argument(
        "--byte-fallback",
        action="store_true",
        default=None,
        help="characters without a piece become those of their bytes, 256 of the vocabulary, not <unk>",
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


def _add_shards(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="data-bins that the documents of --train are dealt out to, which fairseq-train takes in turn (default: 1)",
    )
    group.add_argument(
        "--sample-documents",
        type=int,
        metavar="N",
        help="learn truecasing, subwords and dictionaries from so many documents of --train, drawn at random by --seed "
        f"(default: all; with --shards {SAMPLED:,})",
    )


def config_from(args: argparse.Namespace) -> PrepareConfig:
    """The configuration of a command line.

    Raises:
        InputError: an option that ``--reuse`` settles was given too, or one that nothing would read.
    """
    names = {*(field.name for field in fields(PrepareConfig)), *readers.all_options()}
    given = {name: value for name, value in vars(args).items() if name in names and value is not None}
    settled = [
        f"--{'separate' if name == 'joint' else name.replace('_', '-')}" for name in MODEL_OPTIONS if name in given
    ]
    if "reuse" in given and settled:
        raise InputError(f"--reuse takes the earlier output's options: leave out {', '.join(settled)}")
    refuse(without_effect(given))
    if "subword_model" in given:
        given.setdefault("joint", len(given["subword_model"]) == 1)
    # Not every system can say which processors this process may use.
    given.setdefault(
        "workers", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return config_of(given)


def run(args: argparse.Namespace) -> None:
    """Prepares, and prints the data-bins' paths and the command that trains on them."""
    from docnmt_fairseq.data.kept_index import keep_indexes

    config = config_from(args)
    with alone_in(config.output):
        bins, inputs = fit(config)
        for number, path in enumerate(bins.paths):
            bins.make(number)
            keep_indexes(path, config.languages)
        manifest = finish(bins, inputs)
    for split, counts in manifest["counts"].items():
        words = " + ".join(f"{count} {language}" for language, count in counts["words"].items())
        print(f"{split}: {counts['documents']} documents, {counts['sentences']} sentences, {words} words")
    data = ":".join(str(Path(config.output) / path.name) for path in bins.paths)
    print(data)
    if "train" in manifest["counts"]:
        user_dir = os.path.abspath(args.user_dir or Path(docnmt_fairseq.__file__).parent)
        command = ["fairseq-train", data, "--user-dir", user_dir, "--task", "document_translation"]
        command += _model_options(config)
        command += ["--source-lang", config.source_lang, "--target-lang", config.target_lang]
        command += ["--save-dir", str(Path(config.output) / "model")]
        print(shlex.join(command if config.valid else [*command, "--disable-validation"]))


def _model_options(config: PrepareConfig) -> List[str]:
    """Which model to train, and in what steps: one of some size, or one that goes on from what was imported."""
    imported = imported_from(config.reuse) if config.reuse else None
    if imported is None:
        return ["--arch", "document_transformer_iwslt", *_steps("0.0005", 20000)]
    options = ["--arch", "document_transformer_conditional_pretrained", "--finetune-from-model"]
    options.append(str(Path(str(config.reuse)) / CHECKPOINT))
    for side, positions in zip(("source", "target"), imported["positions"]):
        options += [f"--max-{side}-positions", str(positions)]
    return [*options, *_steps("0.0001", 5000)]


def _steps(rate: str, updates: int) -> List[str]:
    return [*STEPS, "--lr", rate, "--warmup-updates", str(updates // 10), "--max-update", str(updates)]

"""Makes data-bins for fairseq from native corpora.

Reads and checks the corpora, normalises (tokenises, truecases) them, segments them into subwords and writes their ids.
In the output folder, text/ is the text to score against, models/ is what a later --reuse takes, data-bin/ is what
fairseq-train reads, manifest.json describes the run. When run again, only what changed is redone.
"""

import argparse
import os
import shlex
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import List

import docnmt_fairseq
from docnmt_fairseq.cli._options import add_groups, add_options_of
from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.config import PrepareConfig, config_of
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.prepared import CHECKPOINT, data_bins, imported_from

HELP = "corpora to a data-bin: read, normalise, segment into subwords, binarise"
QUIET = ("fairseq",)  # fairseq logs missing optional packages when it is imported
TRAINING = ["--max-tokens", "4096", "--optimizer", "adam", "--lr-scheduler", "inverse_sqrt"]
TRAINING += ["--criterion", "document_label_smoothed_cross_entropy", "--label-smoothing", "0.1"]
FROM_SCRATCH = ["--arch", "document_transformer_conditional_iwslt", "--context-init", "xavier"]
FROM_SCRATCH += ["--context-top-t", "4", "--context-top-t-anneal-start", "12000", "--context-dropout", "0.1"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``PrepareConfig`` and of the formats."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # keeps the lines of the list of formats
    parser.epilog = "formats:\n" + "\n".join(map(_format_help, readers.READERS.names()))
    add_groups(parser, PrepareConfig, unset=True)
    add_options_of(parser.add_argument_group("options of formats"), readers.READERS, unset=True)


def _format_help(name: str) -> str:
    reader = readers.READERS[name]
    lines = [*textwrap.wrap(reader.help, 76), *textwrap.wrap(f"takes {reader.files}", 76)]
    return "\n".join([f"  {name}", *(f"    {line}" for line in lines)])


def config_from(args: argparse.Namespace) -> PrepareConfig:
    """Returns the configuration of a command line."""
    names = {*(known.name for known in fields(PrepareConfig)), *readers.all_options()}
    given = {name: value for name, value in vars(args).items() if name in names and value is not None}
    if "subword_model" in given:
        given.setdefault("joint", len(given["subword_model"]) == 1)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return config_of({"workers": available, **given})


def run(args: argparse.Namespace) -> None:
    """Prepares, and prints counts, the data-bins and the command that trains on them."""
    from docnmt_fairseq.data.loading import cache_indexes

    config = config_from(args)
    manifest = prepare(config)
    bins = data_bins(config.output, config.shards)
    for folder in bins:
        cache_indexes(folder, config.languages)
    for split, counts in manifest["counts"].items():
        words = " + ".join(f"{count} {language}" for language, count in counts["words"].items())
        print(f"{split}: {counts['documents']} documents, {counts['sentences']} sentences, {words} words")
    data = ":".join(map(str, bins))
    print(data)
    if "train" in manifest["counts"]:
        user_dir = args.user_dir or Path(docnmt_fairseq.__file__).parent
        command = ["fairseq-train", data, "--user-dir", os.path.abspath(user_dir), "--task", "document_translation"]
        command += _model_options(config)
        command += ["--source-lang", config.source_lang, "--target-lang", config.target_lang]
        command += ["--save-dir", str(Path(config.output) / "model")]
        print(shlex.join(command if config.valid else [*command, "--disable-validation"]))


def _model_options(config: PrepareConfig) -> List[str]:
    """Returns the options of a new model, or of one that continues from an imported model."""
    imported = imported_from(config.reuse) if config.reuse else None
    if imported is None:
        return [*FROM_SCRATCH, *_training_options("0.0005", 20000)]
    checkpoint = str(Path(str(config.reuse)) / CHECKPOINT)
    options = ["--arch", "document_transformer_conditional_pretrained", "--finetune-from-model", checkpoint]
    for side, positions in zip(("source", "target"), imported["positions"]):
        options += [f"--max-{side}-positions", str(positions)]
    return [*options, *_training_options("0.0001", 5000)]


def _training_options(rate: str, updates: int) -> List[str]:
    return [*TRAINING, "--lr", rate, "--warmup-updates", str(updates // 10), "--max-update", str(updates)]

"""Small runs of the commands, which read and write everything that larger ones do."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, List, Tuple

import docnmt_fairseq
from benchmarks.lib.machine import ROOT
from docnmt_fairseq import cli
from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.corpus.transform import in_processes, transform_file

PLUGIN = str(ROOT / "docnmt_fairseq")
TINY = [
    word
    for side in ("encoder", "decoder")
    for word in f"--{side}-embed-dim 16 --{side}-ffn-embed-dim 24 --{side}-attention-heads 2 --{side}-layers 2".split()
]


def corpus(folder: Path) -> None:
    """Makes the text that everything works on."""
    options = ["--train-documents", "40", "--valid-documents", "4", "--test-documents", "10"]
    cli.main(["synth", "--output", str(folder), *options])


def prepare(text: Path, folder: Path, *more: str) -> None:
    """Prepares it, with every kind of model."""
    splits = [word for split in ("train", "valid", "test") for word in (f"--{split}", str(text / split))]
    options = ["--tokenizer", "moses", "--truecase", "--subwords", "bpe", "--vocab-size", "150", "--workers", "2"]
    code = cli.main(["prepare", "-s", "src", "-t", "tgt", *splits, *options, "--output", str(folder), *more])
    if code:
        raise SystemExit(code)


def tokenise(text: Path, folder: Path) -> None:
    """Does what docnmt prepare does with worker processes, file after file."""
    for name in ("train.src", "train.tgt", "test.src", "test.tgt"):
        with in_processes(partial(tokenizer, "moses", "en"), 2) as function:
            transform_file(text / name, folder / name, function)


def train(data: Path, folder: Path, updates: int = 16) -> None:
    """Trains a tiny model, which is saved every third update, with fairseq's own command."""
    from fairseq_cli.train import cli_main

    docnmt_fairseq.register()  # the package is imported already, and fairseq does not look again
    sys.argv = ["fairseq-train", *_training(data, folder, updates)]
    cli_main()


def _training(data: Path, folder: Path, updates: int) -> List[str]:
    command = [str(data / "data-bin"), "--user-dir", PLUGIN, "--save-dir", str(folder), "--cpu"]
    command += ["--task", "document_translation", "--arch", "document_transformer_conditional", *TINY]
    command += ["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "400", "--max-update", str(updates)]
    command += ["--save-interval-updates", "3", "--keep-interval-updates", "2", "--num-workers", "0", "--seed", "3"]
    return command


def train_by_ranks(data: Path, folder: Path, updates: int = 16) -> None:
    """The same by two processes, which are started again when one of them dies; this process becomes their agent."""
    together = ["--nnodes", "1", "--nproc_per_node", "2", "--max_restarts", "2", "--rdzv_backend", "c10d"]
    together += ["--rdzv_endpoint", "127.0.0.1:0", "--local_addr", "127.0.0.1", "--monitor_interval", "0.1"]
    training = ["-m", "fairseq_cli.train", *_training(data, folder, updates), "--distributed-backend", "gloo"]
    os.environ["OMP_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, "-m", "docnmt_fairseq.torchrun", *together, *training])


def translate(data: Path, checkpoint: Path, source: Path, folder: Path, *more: str) -> Any:
    """Translates the test set; what is there already is gone on with."""
    model = ["--path", str(checkpoint), "--data", str(data), "--max-tokens", "60", "--beam", "3", "--cpu"]
    texts = ["--input", str(source), "--output", str(folder / "out.tgt"), "--resume", "--scores"]
    return cli.main(["translate", *model, *texts, *more])


def generate(data: Path, checkpoint: Path, folder: Path) -> Any:
    """Lets fairseq-generate translate the test set in shares."""
    command = ["generate", "--shards", "2", "--workers", "2", str(data / "data-bin"), "--path", str(checkpoint)]
    command += ["--task", "document_translation", "--beam", "3", "--max-tokens", "60", "--cpu"]
    return cli.main([*command, "--results-path", str(folder)])


def score(reference: Path, systems: Tuple[Path, Path], folder: Path) -> Any:
    """Scores two texts."""
    command = ["score", "--reference", str(reference), "--system", f"a={systems[0]}", "--system", f"b={systems[1]}"]
    return cli.main([*command, "--output", str(folder / "scores.txt")])

"""Corpora, trainings and translations of long_range.py, each made once: finished ones are skipped."""

import contextlib
import json
import multiprocessing
import os
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

import docnmt_fairseq
from benchmarks.lib.machine import ROOT

# Few word types and short sentences: the question is how far back models look, not how many words they know.
LANGUAGES = shlex.split(
    "--kinds pronoun ambiguous --nouns 9 --places 10 --verbs 6 --fillers 10 --names 4 --topics 6 --ambiguous-words 2 "
    "--words-per-sentence 4 4 --seed 1 --valid-documents 20"
)
CORPORA = {
    "short": "--introductions 3 --max-distance 6 --sentences-per-document 10 14",
    "long": "--introductions 6 --max-distance 100 --sentences-per-document 104 120",
}
# As demo.sh: the two upper of three encoder layers have context.
MODEL = shlex.split(
    "--encoder-layers 3 --decoder-layers 1 --encoder-normalize-before --decoder-normalize-before "
    "--share-decoder-input-output-embed --context-layers 1,2"
)
OPTIMISATION = shlex.split(
    "--optimizer adam --adam-betas '(0.9, 0.98)' --lr-scheduler inverse_sqrt --clip-norm 1.0 --dropout 0.0 "
    "--criterion label_smoothed_cross_entropy --label-smoothing 0.1 --cpu --num-workers 0 --no-epoch-checkpoints "
    "--disable-validation --log-format simple --log-interval 50"
)
# A long document is a batch by itself.
PACE = {
    "short": "--max-tokens 1000 --lr 0.003 --warmup-updates 200",
    "long": "--max-tokens 650 --lr 0.001 --warmup-updates 50",
}


@dataclass(frozen=True)
class Training:
    """One training: what it is called, what it sees, and what it goes on from.

    Attributes:
        name: of its folder.
        corpus: of ``CORPORA``.
        seed: of fairseq.
        updates: at which it ends.
        options: of the model: mechanism, t and its schedule.
        begins_as: the training whose weights it begins with (``--finetune-from-model``).
        goes_on: the training that it continues, optimizer, schedule and all.
    """

    name: str
    corpus: str
    seed: int
    updates: int
    options: List[str]
    begins_as: Optional["Training"] = None
    goes_on: Optional["Training"] = None


class Runner:
    """Runs in one folder; every command is fairseq's or docnmt's own entry point, in a process of its own."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        docnmt_fairseq.register()  # once, before the forks
        self.plugin = str(Path(docnmt_fairseq.__file__).parent)
        self.folder.mkdir(parents=True, exist_ok=True)

    def corpora(self, train_documents: Sequence[int], test_documents: int) -> None:
        """Writes and prepares both corpora, with one vocabulary; ``train_documents`` of the short one, the long one."""
        reuse: List[str] = ["--subwords", "none"]
        for (name, shape), documents in zip(CORPORA.items(), train_documents):
            text, data = self.folder / "corpus" / name, self.folder / "data" / name
            if not (self.folder / f"{name}.prepared").exists():
                sizes = ["--train-documents", documents, "--test-documents", test_documents]
                self._run(_docnmt, ["synth", "--output", text, *LANGUAGES, *shape.split(), *sizes], f"synth-{name}")
                splits = [part for split in ("train", "valid", "test") for part in (f"--{split}", text / split)]
                languages = ["--source-lang", "src", "--target-lang", "tgt"]
                self._run(_docnmt, ["prepare", *languages, *reuse, "--output", data, *splits], f"prepare-{name}")
                (self.folder / f"{name}.prepared").touch()
            reuse = ["--reuse", data]

    def train(self, training: Training) -> Path:
        """Returns the folder of a finished training; those it depends on are run before."""
        folder = self.folder / training.name
        if (folder / "finished").exists():
            return folder
        before = training.begins_as or training.goes_on
        start = self.train(before) / "checkpoint_last.pt" if before else None
        options = [*PACE[training.corpus].split(), *OPTIMISATION, *MODEL, *training.options]
        if training.begins_as:
            options += ["--finetune-from-model", start]
        elif training.goes_on and not (folder / "checkpoint_last.pt").exists():
            folder.mkdir(parents=True, exist_ok=True)
            self._record("cp", [str(start), str(folder)])
            shutil.copy(start, folder / "checkpoint_last.pt.part")
            (folder / "checkpoint_last.pt.part").rename(folder / "checkpoint_last.pt")
        where = [self.folder / "data" / training.corpus / "data-bin", "--save-dir", folder, "--seed", training.seed]
        seconds = self._run(_train, [*where, "--max-update", training.updates, *options, *self._task()], training.name)
        (folder / "finished").write_text(f"{seconds:.1f}\n")
        return folder

    def translate(self, name: str) -> Path:
        """Returns the log of translating the long test documents with a finished training."""
        log = self.folder / name / "generate.log"
        if not log.exists():
            checkpoint = ["--path", self.folder / name / "checkpoint_last.pt"]
            search = ["--cpu", "--num-workers", "0", "--gen-subset", "test", "--beam", "1", "--max-tokens", "4000"]
            where = [self.folder / "data" / "long" / "data-bin"]
            self._run(_generate, [*where, *self._task(), *checkpoint, *search], f"{name}/generate")
            (self.folder / name / "generate.out").rename(log)
        return log

    def commands(self) -> List[str]:
        """Returns the commands that ran in this folder, each once."""
        path = self.folder / "commands.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def ceilings(self) -> Dict[str, float]:
        """Returns the best accuracy without context on the long test documents, by kind."""
        path = self.folder / "corpus" / "long" / "test.ceiling.json"
        return {kind: figures["accuracy"] for kind, figures in json.loads(path.read_text())["kinds"].items()}

    def _task(self) -> List[str]:
        return ["--user-dir", self.plugin, "--task", "document_translation"]

    def _run(self, command: Callable[[List[str]], None], arguments: list, log: str) -> float:
        """Returns the seconds that a command took in a fork of this process, which has imported all already."""
        words = [str(word) for word in arguments]
        path = self.folder / f"{log}.out"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._record(str(command.__doc__), words)
        start = time.perf_counter()
        process = multiprocessing.get_context("fork").Process(target=_in_fork, args=(command, words, path))
        process.start()
        process.join()
        if process.exitcode:
            raise SystemExit(f"error: {log} failed; see {path} and {path.with_suffix('.err')}")
        return time.perf_counter() - start

    def _record(self, command: str, words: List[str]) -> None:
        """Keeps the command as it is to be typed in the project's folder."""
        shown = [word.replace(self.plugin, "docnmt_fairseq").replace(f"{ROOT}/", "") for word in words]
        line = f"{command} {shlex.join(shown)}"
        if line not in self.commands():
            with (self.folder / "commands.txt").open("a", encoding="utf-8") as file:
                print(line, file=file)


def _in_fork(command: Callable[[List[str]], None], words: List[str], path: Path) -> None:
    with path.open("w") as out, path.with_suffix(".err").open("w") as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command(words)


def _docnmt(words: List[str]) -> None:
    """docnmt"""
    from docnmt_fairseq.cli import main

    if main(words):
        sys.exit(1)


def _train(words: List[str]) -> None:
    """fairseq-train"""
    from fairseq_cli import train

    sys.argv = ["fairseq-train", *words]
    train.cli_main()


def _generate(words: List[str]) -> None:
    """fairseq-generate"""
    from fairseq_cli import generate

    sys.argv = ["fairseq-generate", *words]
    generate.cli_main()

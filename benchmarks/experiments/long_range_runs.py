"""Corpora, trainings and translations of long_range.py, each made once: finished ones are skipped."""

import json
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from docnmt_fairseq import cli
from docnmt_fairseq.corpus.files import partial_path
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.processes import PLUGIN, fairseq, run
from docnmt_fairseq.recipes.training import LAST, Budget, train, updates_of

# Few word types and short sentences: the question is how far back models look, not how many words they know.
LANGUAGES = shlex.split(
    "--kinds pronoun ambiguous --nouns 9 --places 10 --verbs 6 --fillers 10 --names 4 --topics 6 --ambiguous-words 2 "
    "--words-per-sentence 4 4 --seed 1 --valid-documents 20"
)
CORPORA = {
    "short": "--introductions 3 --max-distance 6 --sentences-per-document 10 14",
    "long": "--introductions 6 --max-distance 100 --sentences-per-document 104 120",
}
# As demo.sh: the two upper of three encoder layers have context. Nothing is validated: the last checkpoint translates.
OPTIONS = shlex.split(
    "--encoder-layers 3 --decoder-layers 1 --encoder-normalize-before --decoder-normalize-before "
    "--share-decoder-input-output-embed --context-layers 1,2 --clip-norm 1.0 --dropout 0.0 --disable-validation "
    "--adam-eps 1e-8 --warmup-init-lr 0"
)
PACE = {
    "short": ["--lr", "0.003", "--warmup-updates", "200"],
    "long": ["--lr", "0.001", "--warmup-updates", "50"],
}
BATCH_TOKENS = {"short": 1000, "long": 650}  # a long document is a batch by itself
SEARCH = ["--beam", "1", "--max-tokens", "4000"]
HERE = Machine(cpu=True)


@dataclass(frozen=True)
class Training:
    """One training: what it is called, what it sees, and what it goes on from.

    Attributes:
        name: of its folder.
        corpus: of ``CORPORA``.
        seed: of fairseq.
        updates: at which it ends.
        arch: of the model, without its size.
        options: of the model: t and its schedule.
        begins_as: the training whose weights it begins with (``--finetune-from-model``).
        goes_on: the training that it continues, optimizer, schedule and all.
    """

    name: str
    corpus: str
    seed: int
    updates: int
    arch: str
    options: List[str]
    begins_as: Optional["Training"] = None
    goes_on: Optional["Training"] = None


class Runner:
    """Runs in one folder."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)

    def corpora(self, train_documents: Sequence[int], test_documents: int) -> None:
        """Writes and prepares both corpora, with one vocabulary; ``train_documents`` of the short one, the long one."""
        reuse: List[str] = ["--subwords", "none"]
        for (name, shape), documents in zip(CORPORA.items(), train_documents):
            text, data = self.folder / "corpus" / name, self.folder / "data" / name
            if not (self.folder / f"{name}.prepared").exists():
                sizes = ["--train-documents", str(documents), "--test-documents", str(test_documents)]
                _docnmt("synth", "--output", text, *LANGUAGES, *shape.split(), *sizes)
                splits = [part for split in ("train", "valid", "test") for part in (f"--{split}", text / split)]
                _docnmt("prepare", "-s", "src", "-t", "tgt", *reuse, "--output", data, *splits)
                (self.folder / f"{name}.prepared").touch()
            reuse = ["--reuse", str(data)]

    def train(self, training: Training) -> Path:
        """Returns the folder of a finished training; those it depends on are run before."""
        folder, options = self.folder / training.name, [*PACE[training.corpus], *training.options]
        if updates_of(folder / LAST) >= training.updates:
            return folder
        before = training.begins_as or training.goes_on
        start = self.train(before) / LAST if before else None
        folder.mkdir(parents=True, exist_ok=True)
        if start is not None and training.begins_as:
            options += ["--finetune-from-model", str(start)]
        elif start is not None and not (folder / LAST).exists():
            shutil.copy(start, partial_path(folder / LAST))
            os.replace(partial_path(folder / LAST), folder / LAST)
        budget = Budget("tiny", training.updates, BATCH_TOKENS[training.corpus], training.updates, OPTIONS)
        model = Model("document_translation", training.arch, lambda updates: options)
        train(self.data(training.corpus), folder, model, budget, training.seed, HERE, training.corpus)
        return folder

    def translate(self, name: str) -> Path:
        """Returns the log of translating the long test documents with a finished training."""
        folder = self.folder / name
        log, errors = folder / "generate.log", folder / "generate.err"
        if not log.exists():
            command = [*fairseq("generate"), str(self.data("long")), "--user-dir", str(PLUGIN), "--path"]
            command += [str(folder / LAST), "--task", "document_translation", "--gen-subset", "test"]
            command += [*SEARCH, *HERE.options()]
            with open(partial_path(log), "w", encoding="utf-8") as out, open(errors, "w", encoding="utf-8") as messages:
                run(command, out, errors, messages)
            os.replace(partial_path(log), log)
        return log

    def data(self, corpus: str) -> Path:
        """The data-bin of a corpus."""
        return self.folder / "data" / corpus / "data-bin"

    def ceilings(self) -> Dict[str, float]:
        """Returns the best accuracy without context on the long test documents, by kind."""
        path = self.folder / "corpus" / "long" / "test.ceiling.json"
        return {kind: figures["accuracy"] for kind, figures in json.loads(path.read_text())["kinds"].items()}


def _docnmt(*arguments: object) -> None:
    if cli.main([str(word) for word in arguments]):
        raise SystemExit(1)

"""Selection over long documents: accuracy by distance, up to 100 sentences, by schedule of the top-t selection.

    python -m benchmarks.experiments.long_range     (hours on one core; finished trainings are skipped)

Every model is trained on short documents first, then on long ones. Regimes:

    all         all sentences throughout
    schedule    all sentences on short documents; on long ones annealed from all to t
    from start  t from the first update
    at once     all sentences on short documents, t from the first long one
"""

import argparse
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.experiments.comparison import accuracy, distance_table, right_of_cases
from benchmarks.lib.reporting import RESULTS, ROOT, Store, finish, new_figure, style, table, write
from docnmt_fairseq import cli
from docnmt_fairseq.files import partial_path
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.processes import PLUGIN, Machine, fairseq, run_to
from docnmt_fairseq.recipes.training import LAST, Budget, optimizer_history, train

LANGUAGES = shlex.split(
    "--kinds pronoun ambiguous --nouns 9 --places 10 --verbs 6 --fillers 10 --names 4 --topics 6 --ambiguous-words 2 "
    "--words-per-sentence 4 4 --seed 1 --valid-documents 20"
)
CORPORA = {
    "short": "--introductions 3 --max-distance 6 --sentences-per-document 10 14",
    "long": "--introductions 6 --max-distance 100 --sentences-per-document 104 120",
}
OPTIONS = shlex.split(
    "--encoder-layers 3 --decoder-layers 1 --encoder-normalize-before --decoder-normalize-before "
    "--share-decoder-input-output-embed --context-layers 1,2 --clip-norm 1.0 --dropout 0.0 --adam-eps 1e-8 "
    "--warmup-init-lr 0"
)
PACE = {
    "short": ["--lr", "0.003", "--warmup-updates", "200", "--disable-validation"],
    "long": ["--lr", "0.001", "--warmup-updates", "50", "--disable-validation"],
}
BATCH_TOKENS = {"short": 1000, "long": 650}  # a long document is a batch of its own
VALIDATE_EVERY = 25  # updates, unless --disable-validation
SEARCH = ["--beam", "1", "--max-tokens", "4000"]
HERE = Machine(cpu=True)
BINS = ((1, 3), (4, 10), (11, 30), (31, 60), (61, 100))
REGIMES = ("all", "schedule", "from start", "at once")
# As published: the presets use a selection loss and key order, see selection.py.
PAPER = {"conditional": ["--selection-loss", "0"], "tree": ["--selection-loss", "0", "--tree-order", "text"]}
EXPLANATION = """\
Artificial documents in which two kinds of words are decided by an earlier sentence, at uniform distances from 1 to 100:
pronouns by one of six nouns, ambiguous words by the topic sentence. Documents have 104 to 120 sentences of 4 words; 100
are translated with beam 1. Models are trained on short documents first (10 to 14 sentences), then on long ones
(`--finetune-from-model`). **all**: all sentences throughout; **schedule**: annealed on long documents from all to t;
**from start**: t from the first update; **at once**: t from the first long document. Seeds in order."""


@dataclass(frozen=True)
class Training:
    """Training of one stage.

    Attributes:
        name: name of its folder.
        corpus: key of ``CORPORA``.
        seed: seed of fairseq.
        updates: last update.
        arch: architecture without size.
        options: options of the model.
        finetunes: training whose weights are the initial ones.
        continues: training whose checkpoint is continued with its optimizer and schedule.
    """

    name: str
    corpus: str
    seed: int
    updates: int
    arch: str
    options: list[str]
    finetunes: "Training | None" = None
    continues: "Training | None" = None


class Runner:
    """Corpora, trainings and translations in one folder; what is finished is not repeated.

    Args:
        folder: folder.
        size: size of the architecture.
        options: options of all trainings.
        pace: options by corpus.
    """

    def __init__(self, folder: Path, size: str = "tiny", options: Sequence[str] = OPTIONS, pace: Any = None):
        self.folder, self.size, self.options, self.pace = folder.resolve(), size, list(options), pace or PACE
        self.folder.mkdir(parents=True, exist_ok=True)

    def write_corpora(self, train_documents: Sequence[int], test_documents: int) -> None:
        """Writes and prepares both corpora with one vocabulary."""
        reuse = ["--subwords", "none"]
        for (name, shape), documents in zip(CORPORA.items(), train_documents):
            text, data = self.folder / "corpus" / name, self.folder / "data" / name
            if not (self.folder / f"{name}.prepared").exists():
                sizes = ["--train-documents", documents, "--test-documents", test_documents]
                splits = [part for split in ("train", "valid", "test") for part in (f"--{split}", text / split)]
                for words in (
                    ["synth", "--output", text, *LANGUAGES, *shape.split(), *sizes],
                    ["prepare", "-s", "src", "-t", "tgt", *reuse, "--output", data, *splits],
                ):
                    if cli.main(list(map(str, words))):
                        raise SystemExit(1)
                (self.folder / f"{name}.prepared").touch()
            reuse = ["--reuse", str(data)]

    def train(self, training: Training) -> Path:
        """Returns the folder of a finished training, after those that it depends on."""
        folder, options = self.folder / training.name, [*self.pace[training.corpus], *training.options]
        history = optimizer_history(folder / LAST)
        if history and history["num_updates"] >= training.updates:
            return folder
        previous = training.finetunes or training.continues
        start = self.train(previous) / LAST if previous else None
        folder.mkdir(parents=True, exist_ok=True)
        if training.finetunes:
            options += ["--finetune-from-model", str(start)]
        elif start is not None and not (folder / LAST).exists():
            shutil.copy(start, partial_path(folder / LAST))
            os.replace(partial_path(folder / LAST), folder / LAST)
        tokens = BATCH_TOKENS[training.corpus]
        budget = Budget(self.size, training.updates, tokens, VALIDATE_EVERY, self.options)
        model = Model("document_translation", training.arch, lambda updates: options)
        train(self.data(training.corpus), folder, model, budget, training.seed, HERE, training.corpus)
        return folder

    def translate(self, name: str) -> Path:
        """Returns the log of translating the long test documents with a finished training."""
        folder = self.folder / name
        log = folder / "generate.log"
        if not log.exists():
            words = [*fairseq("generate"), str(self.data("long")), "--user-dir", str(PLUGIN), "--path"]
            words += [str(folder / LAST), "--task", "document_translation", "--gen-subset", "test"]
            run_to([*words, *SEARCH, *HERE.options()], log)
        return log

    def right_of_cases(self, name: str) -> dict[str, dict[str, list[int]]]:
        """Returns {kind: {distance: [right, cases]}} of a finished training on long test documents."""
        return right_of_cases(self.folder / "corpus" / "long", self.translate(name))

    def data(self, corpus: str) -> Path:
        """Returns the data-bin of a corpus."""
        return self.folder / "data" / corpus / "data-bin"

    def ceilings(self) -> dict[str, float]:
        """Returns the best accuracy without context on the long test documents by kind."""
        path = self.folder / "corpus" / "long" / "test.ceiling.json"
        return {kind: figures["accuracy"] for kind, figures in json.loads(path.read_text())["kinds"].items()}


@dataclass(frozen=True)
class Schedule:
    """Updates on short and long documents, and start and end of annealing on long ones."""

    short: int
    long: int
    anneal_start: int
    anneal_end: int


@dataclass(frozen=True)
class Cell:
    """Model of the table; ``t`` is 0 for all sentences."""

    mechanism: str
    regime: str
    t: int
    seed: int

    @property
    def model(self) -> str:
        """Returns the name of the model without its seed."""
        return f"{self.mechanism}, {self.regime}" + (f", t = {self.t}" if self.t else "")

    @property
    def name(self) -> str:
        """Returns the name of the folder."""
        selected = f"t{self.t}" if self.t else "all"
        return f"{self.mechanism}-s{self.seed}-{self.regime.replace(' ', '_')}-{selected}"


def cells(mechanisms: Sequence[str], top_t: Sequence[int], seeds: Sequence[int]) -> Iterator[Cell]:
    """Yields all models, those of the first seed first."""
    for seed in seeds:
        for regime in REGIMES:
            for t in [0] if regime == "all" else top_t:
                for mechanism in mechanisms:
                    yield Cell(mechanism, regime, t, seed)


def training_of(cell: Cell, schedule: Schedule, more: Sequence[str] = ()) -> Training:
    """Returns the last training of a model; stages that models have in common are the same training.

    Args:
        cell: model.
        schedule: updates.
        more: additional options of the model.
    """
    arch, seed = f"document_transformer_{cell.mechanism}", cell.seed
    own = [*PAPER.get(cell.mechanism, []), *more, "--context-top-t"]
    name = f"{cell.mechanism}-s{seed}"
    short = Training(f"{name}-short-all", "short", seed, schedule.short, arch, [*own, "0"])
    if cell.regime == "from start":
        short = Training(f"{name}-short-t{cell.t}", "short", seed, schedule.short, arch, [*own, str(cell.t)])
    if cell.regime != "schedule":
        return Training(cell.name, "long", seed, schedule.long, arch, [*own, str(cell.t)], finetunes=short)
    start, duration = schedule.anneal_start, schedule.anneal_end - schedule.anneal_start
    anneal = ["--context-top-t-anneal-start", str(start), "--context-top-t-anneal-updates", str(duration)]
    # t has no effect before annealing starts.
    shared = Training(f"{name}-then-long-all", "long", seed, start, arch, [*own, "0", *anneal], finetunes=short)
    return Training(cell.name, "long", seed, schedule.long, arch, [*own, str(cell.t), *anneal], continues=shared)


def report(stored: Store, results: Path) -> None:
    """Writes the report and its figure."""
    names = list(dict.fromkeys(run["model"] for run in stored.runs.values()))
    models, ceilings = stored.by_model(names), stored.facts["ceilings"]
    bins = (*BINS, (BINS[0][0], BINS[-1][1]))
    parts = ["# Selection over long documents", EXPLANATION]
    schedules = {tuple(run["schedule"].items()) for run in stored.runs.values()}
    parts.append(
        table(["updates", "short", "long", "annealing starts", "ends"], [["", *(v for _, v in s)] for s in schedules])
    )
    for kind, ceiling in ceilings.items():
        parts += [f"## {kind}", f"Right in % by distance ({100 * ceiling:.1f} % at best without context):"]
        parts += [distance_table(models, kind, bins)]
    figure, (panels,) = new_figure(1, len(ceilings), (6 * len(ceilings), 4.5))
    for (kind, ceiling), panel in zip(ceilings.items(), panels):
        for number, (name, seeds) in enumerate(models.items()):
            shares = [[accuracy(run, kind, *ends) for run in seeds] for ends in BINS]
            means = [sum(map(float, filter(None, one))) / len(one) for one in shares]
            panel.plot(range(len(BINS)), means, label=name, **style(number))
        panel.axhline(ceiling, color="#555555", linestyle="--", linewidth=1)
        panel.set_xticks(range(len(BINS)), [f"{low}-{high}" for low, high in BINS])
        finish(panel, title=kind, ylim=(0, 1.04), xlabel="distance to the deciding sentence")
    figure.savefig(results / "long_range.png")
    write("long_range", [*parts, "![Accuracy by distance](long_range.png)", *stored.provenance()], results)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains and scores all models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "long_range", help="folder for corpora and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--mechanisms", nargs="+", default=["conditional", "tree"])
    parser.add_argument("--top-t", nargs="+", type=int, default=[4, 1, 2, 8])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--regimes", nargs="+", default=REGIMES, choices=REGIMES)
    parser.add_argument(
        "--options", default="", help="additional options of the model, in one word; use another --work"
    )
    parser.add_argument("--train-documents", nargs=2, type=int, default=(8000, 800), metavar=("SHORT", "LONG"))
    parser.add_argument("--test-documents", type=int, default=100)
    parser.add_argument("--updates", nargs=4, type=int, default=(1200, 400, 100, 250),
                        metavar=("SHORT", "LONG", "ANNEAL_START", "ANNEAL_END"))  # fmt: skip
    args = parser.parse_args(argv)
    schedule, runner = Schedule(*args.updates), Runner(args.work)
    runner.write_corpora(args.train_documents, args.test_documents)
    stored = Store(args.results / "long_range.json")
    stored.facts["ceilings"] = runner.ceilings()
    stored.add_call()
    for cell in cells(args.mechanisms, args.top_t, args.seeds):
        if cell.regime in args.regimes:
            runner.train(training_of(cell, schedule, shlex.split(args.options)))
            figures: Mapping[str, Any] = {"right_of_cases": runner.right_of_cases(cell.name)}
            stored.add(cell.name, {**asdict(cell), "model": cell.model, "schedule": asdict(schedule), **figures})
            print(f"{cell.model}, seed {cell.seed}: done", flush=True)
    report(stored, args.results)


if __name__ == "__main__":
    main()

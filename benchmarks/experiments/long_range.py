"""Does selection learn over long documents? Accuracy by distance, up to 100 sentences, with and without a schedule.

    python -m benchmarks.experiments.long_range     (hours on one core; run again, it goes on where it was)

Every model first learns on short documents, then goes on over long ones. What they keep of a document:

    all         every sentence, throughout
    schedule    every sentence on short documents and at first on long ones, then ever fewer, at last t
    from start  t from the first update
    at once     every sentence on short documents, t from the first long one
"""

import argparse
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Iterable, Iterator, Sequence

from benchmarks.experiments import long_range_report as report
from benchmarks.experiments.long_range_report import REGIMES
from benchmarks.experiments.long_range_runs import Runner, Training
from benchmarks.lib.machine import RESULTS, ROOT, command, machine
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.synth_report import build_report

# As the paper has it: the presets of these mechanisms teach the selection, see selection.py.
PAPER = {"conditional": ["--selection-loss", "0"], "tree": ["--selection-loss", "0", "--tree-order", "text"]}


@dataclass(frozen=True)
class Budget:
    """Updates on short documents, on long ones, and when narrowing begins and ends there."""

    short: int
    long: int
    narrow_from: int
    narrow_to: int


@dataclass(frozen=True)
class Variant:
    """Options of the model beside the usual ones: those that count always, and those that only selection heeds."""

    always: Sequence[str] = ()
    selecting: Sequence[str] = ()


@dataclass(frozen=True)
class Cell:
    """One model of the table; ``t`` is 0 where everything is kept, ``variant`` names options beside the usual ones."""

    mechanism: str
    regime: str
    t: int
    seed: int
    variant: str = ""

    @property
    def name(self) -> str:
        """Returns the name of its training."""
        kept = "all" if self.t == 0 else f"t{self.t}"
        return _folder(self.mechanism, self.variant, f"s{self.seed}", self.regime, kept)


def _folder(*parts: str) -> str:
    return "-".join(filter(None, parts)).replace(", ", "-").replace(" ", "_")


def cells(mechanisms: Iterable[str], kept: Iterable[int], seeds: Iterable[int]) -> Iterator[Cell]:
    """Yields the cells of the table, the most telling first: all of one seed before the next."""
    for seed in seeds:
        for regime in REGIMES:
            for t in [0] if regime == "all" else kept:
                for mechanism in mechanisms:
                    yield Cell(mechanism, regime, t, seed)


def training_of(cell: Cell, budget: Budget, variant: Variant) -> Training:
    """Returns the training that ends as a cell's model; what cells share is the same training in all of them.

    Args:
        cell: of the table.
        budget: updates.
        variant: of the model.
    """
    arch = f"document_transformer_{cell.mechanism}"
    paper = PAPER.get(cell.mechanism, [])
    everything = [*paper, *variant.always, "--context-top-t", "0"]
    few = [*paper, *variant.always, *variant.selecting, "--context-top-t", str(cell.t)]
    # Where everything is kept, how to select plays no part: variants that differ in nothing else share this.
    always = (word.strip("-") for word in variant.always)
    prefix = _folder(cell.mechanism, *always, f"s{cell.seed}", "short")
    short = Training(f"{prefix}-all", "short", cell.seed, budget.short, arch, everything)
    if cell.regime == "from start":
        name = _folder(cell.mechanism, cell.variant, f"s{cell.seed}", f"short-t{cell.t}")
        short = Training(name, "short", cell.seed, budget.short, arch, few)
    if cell.regime != "schedule":
        return Training(cell.name, "long", cell.seed, budget.long, arch, few, begins_as=short)
    duration = budget.narrow_to - budget.narrow_from
    schedule = [
        "--context-top-t-anneal-start",
        str(budget.narrow_from),
        "--context-top-t-anneal-updates",
        str(duration),
    ]
    # The state of the schedule is a function of the update: until narrowing begins, t plays no part.
    shared = Training(
        f"{prefix}-then-long-all",
        "long",
        cell.seed,
        budget.narrow_from,
        arch,
        [*everything, *schedule],
        begins_as=short,
    )
    return Training(cell.name, "long", cell.seed, budget.long, arch, [*few, *schedule], goes_on=shared)


def run_cell(runner: Runner, cell: Cell, budget: Budget, variant: Variant) -> dict:
    """Returns what a cell reached: accuracies by kind and distance, BLEU; trains and translates what is missing."""
    runner.train(training_of(cell, budget, variant))
    log = runner.translate(cell.name)
    result = build_report(runner.folder / "corpus" / "long", "test", {"": log}).systems[""]
    figures = {
        kind: {str(distance): [figure.right, figure.cases] for distance, figure in by_distance.items()}
        for kind, by_distance in result.accuracy.by_kind_and_distance.items()
    }
    settings = {"budget": asdict(budget), "options": shlex.join([*variant.always, *variant.selecting])}
    return {**asdict(cell), **settings, "bleu": result.scores.bleu, "right_of_cases": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "long_range", help="folder for corpora and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--mechanisms", nargs="+", default=["conditional", "tree"])
    parser.add_argument("--kept", nargs="+", type=int, default=[4, 1, 2, 8], metavar="T")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--regimes", nargs="+", default=REGIMES, choices=REGIMES)
    parser.add_argument("--variant", default="", metavar="NAME", help="the table's name for what follows, if anything")
    parser.add_argument("--options", default="", help="more options of the model, in one word")
    parser.add_argument("--selecting-options", default="", help="the same, of options that only selection heeds")
    parser.add_argument("--train-documents", nargs=2, type=int, default=(8000, 800), metavar=("SHORT", "LONG"))
    parser.add_argument("--test-documents", type=int, default=100)
    parser.add_argument("--short-updates", type=int, default=1200)
    parser.add_argument("--long-updates", type=int, default=400)
    parser.add_argument("--narrow-from", type=int, default=100)
    parser.add_argument("--narrow-to", type=int, default=250)
    args = parser.parse_args()
    budget = Budget(args.short_updates, args.long_updates, args.narrow_from, args.narrow_to)
    runner = Runner(args.work)
    runner.corpora(args.train_documents, args.test_documents)
    variant = Variant(shlex.split(args.options), shlex.split(args.selecting_options))
    stored = Store(args.results / "long_range.json")
    stored.facts.update(machine=machine(), ceilings=runner.ceilings())
    stored.called(command())
    for cell in cells(args.mechanisms, args.kept, args.seeds):
        if cell.regime not in args.regimes:
            continue
        cell = Cell(cell.mechanism, cell.regime, cell.t, cell.seed, args.variant)
        stored.add(cell.name, run_cell(runner, cell, budget, variant))
        print(report.line(stored.runs[cell.name]), flush=True)
    report.write(stored, args.results)


if __name__ == "__main__":
    main()

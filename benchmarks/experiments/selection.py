"""Is what selection leaves out missed? Trainings that jump to t sentences, with and without the selection's loss.

    python -m benchmarks.experiments.selection long     (an hour on one core; run again, it goes on where it was)
    python -m benchmarks.experiments.selection demo     (the demo with ten seeds, five minutes each)
    python -m benchmarks.experiments.selection demo --top-t 2

``long``: one model a seed learns with all sentences, first on short documents, then on those of 104 to 120 sentences.
From it on, for some updates, the selection is taught or not; then t jumps from all to what is asked for, at once. Flat
selection and trees have the same parameters, and so the same model to begin with.
"""

import argparse
import itertools
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from benchmarks.experiments import selection_report as report
from benchmarks.experiments.long_range_runs import CORPORA, Runner
from benchmarks.experiments.selection_demo import demo_name, run_demo
from benchmarks.experiments.selection_shares import shares_found
from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import RESULTS, ROOT, call, machine
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.synth_report import build_report
from docnmt_fairseq.recipes.processes import PLUGIN, fairseq, run
from docnmt_fairseq.recipes.training import LAST, updates_of

SHORT, DENSE, JUMP, END = 1500, 150, 300, 400  # updates: on short documents; on long ones, when what begins or ends
COMMON = [
    "--task",
    "document_translation",
    "--num-workers",
    "0",
    "--cpu",
    "--optimizer",
    "adam",
    "--adam-betas",
    "(0.9, 0.98)",
    "--lr-scheduler",
    "inverse_sqrt",
    "--clip-norm",
    "1.0",
    "--criterion",
    "label_smoothed_cross_entropy",
    "--label-smoothing",
    "0.1",
    "--dropout",
    "0",
    "--encoder-layers",
    "3",
    "--decoder-layers",
    "1",
    "--encoder-normalize-before",
    "--decoder-normalize-before",
    "--share-decoder-input-output-embed",
    "--context-layers",
    "1,2",
    "--context-init",
    "xavier",
    "--encoder-embed-dim",
    "128",
    "--decoder-embed-dim",
    "128",
    "--encoder-ffn-embed-dim",
    "256",
    "--decoder-ffn-embed-dim",
    "256",
    "--no-epoch-checkpoints",
    "--log-format",
    "json",
]
PACE = {
    "short": shlex.split("--max-tokens 1000 --lr 0.002 --warmup-updates 200 --disable-validation"),
    "long": shlex.split("--max-tokens 650 --lr 0.0007 --warmup-updates 50 --validate-interval-updates 25"),
}


def _part(taught: str) -> str:
    return taught.replace(", ", " ").replace(" ", "-")


@dataclass(frozen=True)
class Cell:
    """A model of the table; ``taught``: how its selection is, one of ``TAUGHT``."""

    mechanism: str
    t: int
    taught: str
    seed: int

    @property
    def name(self) -> str:
        """Returns the name of its folder."""
        return f"s{self.seed}-{self.way}-{self.mechanism}-t{self.t}"

    @property
    def way(self) -> str:
        """Returns how it is taught, as a part of names."""
        return _part(self.taught)

    @property
    def from_start(self) -> bool:
        """Returns whether it is taught on short documents, too."""
        return self.taught.startswith(FROM_START)


WINDOW = ["--selection-loss-phase", "window"]  # from DENSE to JUMP
TAUGHT = {
    "from the start": [],  # as the presets: while all sentences are seen, on short documents, too
    "from the start, weight 0.1": ["--selection-loss", "0.1"],
    "in a window": WINDOW,
    "not": ["--selection-loss", "0"],
    "in a window, weight 0.1": [*WINDOW, "--selection-loss", "0.1"],
    "in a window, weight 0.01": [*WINDOW, "--selection-loss", "0.01"],
    "in a window, weight 10": [*WINDOW, "--selection-loss", "10"],
    "in a window, temperature 1": [*WINDOW, "--selection-loss-temperature", "1"],
    "in a window, and after it": ["--selection-loss-phase", "always"],
    "in a window, gradient into states": WINDOW,  # selection_into_states.py
    "in a window, until mass is 0.95": [*WINDOW, "--context-top-t-anneal-threshold", "0.95"],
}
PROGRAMS = {"in a window, gradient into states": [sys.executable, "-m", "benchmarks.experiments.selection_into_states"]}
FROM_START, LIGHTER, IN_WINDOW, NOT = list(TAUGHT)[:4]
WAITING = list(TAUGHT)[-1]  # begins as IN_WINDOW does, and jumps when it is ready, END updates later at most


def cells(seeds: List[int], kept: List[int], ablations: bool) -> Iterator[Cell]:
    """Yields the cells, the most telling first."""
    for seed in seeds:
        for t in kept:
            for mechanism in ("conditional", "tree"):
                yield Cell(mechanism, t, FROM_START, seed)
    if not ablations:
        return
    for seed in seeds:
        for t in kept:
            yield Cell("conditional", t, LIGHTER, seed)
            yield Cell("conditional", t, NOT, seed)
            for mechanism in ("conditional", "tree"):
                yield Cell(mechanism, t, IN_WINDOW, seed)
            yield Cell("conditional", t, WAITING, seed)
        for taught in list(TAUGHT)[4:-1]:
            yield Cell("conditional", 2, taught, seed)


def train(
    runner: Runner,
    name: str,
    corpus: str,
    updates: int,
    start: Optional[Tuple[str, str]],
    *options: str,
    program: Optional[List[str]] = None,
) -> str:
    """Trains a model if need be; returns its name.

    Args:
        runner: whose folder it is in.
        name: of its folder.
        corpus: of ``CORPORA``.
        updates: at which it ends.
        start: ``goes on`` or ``begins as``, and the name of the model that it does.
        options: of fairseq-train.
        program: that trains; None: fairseq-train.
    """
    folder = runner.folder / name
    if updates_of(folder / LAST) >= updates:
        return name
    folder.mkdir(exist_ok=True)
    more: List[str] = []
    if start is not None and start[0] == "begins as":
        more = ["--finetune-from-model", str(runner.folder / start[1] / LAST)]
    elif start is not None:
        shutil.copy(runner.folder / start[1] / LAST, folder / LAST)
    command = [
        *(program or fairseq("train")),
        str(runner.data(corpus)),
        "--user-dir",
        str(PLUGIN),
        *COMMON,
        *PACE[corpus],
        *more,
    ]
    command += ["--max-update", str(updates), "--log-interval", "25", "--save-dir", str(folder), *options]
    with open(folder / "train.log", "w", encoding="utf-8") as log:
        run(command, log, folder / "train.log")
    return name


def window_of(cell: Cell) -> str:
    """Returns how the selection is taught until the jump may come."""
    return IN_WINDOW if cell.taught == WAITING else cell.taught


def trained(runner: Runner, cell: Cell) -> str:
    """Returns the folder's name of a cell's model; trains what is missing."""
    seed, arch = ["--seed", str(cell.seed)], "document_transformer_{}_tiny"
    flat, schedule = ["--arch", arch.format("conditional")], ["--context-top-t-anneal-start", str(JUMP)]
    # No document has as few sentences as the largest t: until then t plays no part, and all cells share one training.
    dense = [*flat, *schedule, "--context-top-t", "8", *seed]
    if cell.from_start:
        own = [
            *flat,
            "--context-top-t",
            "8",
            "--context-top-t-anneal-start",
            str(10 * SHORT),
            *TAUGHT[cell.taught],
            *seed,
        ]
        short = train(runner, f"s{cell.seed}-short-{cell.way}", "short", SHORT, None, *own)
        start = ("begins as", short)
        taught = train(runner, stages(cell)[0], "long", JUMP, start, *dense, *TAUGHT[cell.taught])
    else:
        short = train(runner, f"s{cell.seed}-short", "short", SHORT, None, *flat, "--context-top-t", "0", *seed)
        start = ("begins as", short)
        before = train(runner, stages(cell)[0], "long", DENSE, start, *dense, "--selection-loss", "0")
        window, program = window_of(cell), PROGRAMS.get(cell.taught)
        start = ("goes on", before)
        taught = train(runner, stages(cell)[1], "long", JUMP, start, *dense, *TAUGHT[window], program=program)
    options = [*schedule, "--context-top-t", str(cell.t), *TAUGHT[cell.taught], *seed]
    name, end = stages(cell)[-1], 2 * END if cell.taught == WAITING else END
    return train(runner, name, "long", end, ("goes on", taught), "--arch", arch.format(cell.mechanism), *options)


def stages(cell: Cell) -> List[str]:
    """Returns the folders' names of a cell's trainings on long documents, in order."""
    if cell.from_start:
        return [f"s{cell.seed}-long-{cell.way}", cell.name]
    return [f"s{cell.seed}-long", f"s{cell.seed}-{_part(window_of(cell))}", cell.name]


def run_cell(runner: Runner, cell: Cell) -> dict:
    """Returns what a cell reached: accuracies by kind, nll at validations; trains and translates what is missing."""
    name = trained(runner, cell)
    result = build_report(runner.folder / "corpus" / "long", "test", {"": runner.translate(name)}).systems[""]
    figures = {
        kind: [sum(figure.right for figure in part.values()), sum(figure.cases for figure in part.values())]
        for kind, part in result.accuracy.by_kind_and_distance.items()
    }
    found = shares_found(runner, name) if cell.mechanism == "tree" else None
    nll = validation_curve(*(runner.folder / log / "train.log" for log in stages(cell)))
    return {**asdict(cell), "right_of_cases": figures, "nll": nll, "found": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["long", "demo"])
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "selection", help="folder for corpora and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--seeds", nargs="+", type=int, help="default: 1 2 3; of the demo 1 to 10")
    parser.add_argument("--top-t", nargs="+", type=int, help="sentences that are selected (default: 4; long: 4 2 8 1)")
    parser.add_argument("--ablations", action="store_true", help="long: other phases, weights, temperatures, too")
    parser.add_argument("--documents", nargs=3, type=int, default=(8000, 800, 100), metavar=("SHORT", "LONG", "TEST"))
    args = parser.parse_args()
    stored = Store(args.results / "selection.json")
    stored.facts.update(machine=machine())
    stored.called(call(None))
    args.work.mkdir(parents=True, exist_ok=True)
    if args.part == "demo":
        for t, seed in itertools.product(args.top_t or [4], args.seeds or range(1, 11)):
            stored.add(demo_name(seed, t), run_demo(args.work, seed, t))
            print(report.demo_line(stored.runs[demo_name(seed, t)]), flush=True)
    else:
        runner = Runner(args.work)
        assert set(PACE) == set(CORPORA)
        runner.corpora(args.documents[:2], args.documents[2])
        for cell in cells(args.seeds or [1, 2, 3], args.top_t or [4, 2, 8, 1], args.ablations):
            stored.add(cell.name, run_cell(runner, cell))
            print(report.line(stored.runs[cell.name]), flush=True)
    report.write(stored, args.results, report.Schedule(SHORT, DENSE, JUMP, END), list(TAUGHT))


if __name__ == "__main__":
    main()

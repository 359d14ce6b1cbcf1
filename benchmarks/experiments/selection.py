"""Effect of the selection loss when attention changes from all sentences to the top t at once.

    python -m benchmarks.experiments.selection     (an hour on one core; finished trainings are skipped)

Models attend to all sentences, on short documents and then on long ones (104 to 120 sentences); then to the top t. The
selection loss is used from the start, in a window of updates before the change, or not.
"""

import argparse
import itertools
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.experiments.long_range import OPTIONS, Runner, Training
from benchmarks.lib.recipe_results import validation_curve
from benchmarks.lib.reporting import RESULTS, ROOT, Store, finish, new_figure, side_by_side, style, table, write

SHORT, WINDOW_START, CHANGE, END = 1500, 150, 300, 400  # updates on short documents; on long ones
WIDTH = shlex.split(
    "--encoder-embed-dim 128 --decoder-embed-dim 128 --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 "
    "--context-init xavier"
)
PACE = {
    "short": shlex.split("--lr 0.002 --warmup-updates 200 --disable-validation"),
    "long": shlex.split("--lr 0.0007 --warmup-updates 50"),
}
WINDOW, NONE = ["--selection-loss-phase", "window"], ["--selection-loss", "0"]
FROM_START, IN_WINDOW, NOT = "from the start", "in a window", "not used"
LOSSES = {  # options of the selection loss
    FROM_START: [],
    "from the start, weight 0.1": ["--selection-loss", "0.1"],
    IN_WINDOW: WINDOW,
    NOT: NONE,
    "in a window, weight 0.1": [*WINDOW, "--selection-loss", "0.1"],
    "in a window, temperature 1": [*WINDOW, "--selection-loss-temperature", "1"],
    "in a window and after it": ["--selection-loss-phase", "always"],
}
TEXT = f"""\
Documents of 104 to 120 sentences of 4 words, two kinds of words decided by an earlier sentence 1 to 100 sentences back.
{SHORT:,} updates on short documents and {CHANGE} on long ones with all sentences; then {END - CHANGE} with
the top t. The selection loss is used from the start, in a window from update {WINDOW_START} to {CHANGE}, or not.
Right in % over all distances; rise of the validation nll (bits per token) over its minimum before the change: maximum
and at the end."""


@dataclass(frozen=True)
class Cell:
    """Model of the table; ``loss`` is a key of ``LOSSES``."""

    mechanism: str
    t: int
    loss: str
    seed: int

    @property
    def model(self) -> str:
        """Returns the name of the model without its seed."""
        return f"{self.mechanism}, t = {self.t}, {self.loss}"

    @property
    def name(self) -> str:
        """Returns the name of the folder."""
        return f"s{self.seed}-{self.loss.replace(', ', ' ').replace(' ', '-')}-{self.mechanism}-t{self.t}"


def cells(seeds: Sequence[int], top_t: Sequence[int], ablations: bool) -> Iterator[Cell]:
    """Yields the models: the presets' loss first, then the others."""
    for seed, t, mechanism in itertools.product(seeds, top_t, ("conditional", "tree")):
        yield Cell(mechanism, t, FROM_START, seed)
    for seed, t, loss in itertools.product(seeds, top_t, LOSSES) if ablations else ():
        if loss != FROM_START:
            yield Cell("conditional", t, loss, seed)


def training_of(cell: Cell) -> Training:
    """Returns the last training of a model; stages that models have in common are the same training."""
    seed, flat, loss = cell.seed, "document_transformer_conditional", LOSSES[cell.loss]
    own = cell.name.rpartition(f"-{cell.mechanism}")[0]
    anneal = ["--context-top-t-anneal-start", str(CHANGE)]
    dense = [*anneal, "--context-top-t", "8"]  # before the change t has no effect
    last = [*anneal, "--context-top-t", str(cell.t), *loss]
    arch = f"document_transformer_{cell.mechanism}"
    if cell.loss.startswith(FROM_START):
        never = ["--context-top-t", "8", "--context-top-t-anneal-start", str(10 * SHORT), *loss]
        short = Training(f"{own}-short", "short", seed, SHORT, flat, never)
        change = Training(f"{own}-long", "long", seed, CHANGE, flat, [*dense, *loss], finetunes=short)
    else:
        short = Training(f"s{seed}-short", "short", seed, SHORT, flat, ["--context-top-t", "0"])
        shared = Training(f"s{seed}-long", "long", seed, WINDOW_START, flat, [*dense, *NONE], finetunes=short)
        change = Training(f"{own}-long", "long", seed, CHANGE, flat, [*dense, *loss], continues=shared)
    return Training(cell.name, "long", seed, END, arch, last, continues=change)


def run_cell(runner: Runner, cell: Cell) -> dict:
    """Returns right translations by kind and the validation curve on long documents."""
    training = training_of(cell)
    runner.train(training)
    logs = [runner.folder / training.name / "train.log"]
    while (training := training.continues) is not None:
        logs.insert(0, runner.folder / training.name / "train.log")
    figures = {
        kind: [sum(column) for column in zip(*part.values())] for kind, part in runner.right_of_cases(cell.name).items()
    }
    return {**asdict(cell), "model": cell.model, "right_of_cases": figures, "nll": validation_curve(*logs)}


def percent(figure: Sequence[int]) -> float:
    """Returns right cases in %."""
    return 100 * figure[0] / figure[1]


def rise(run: dict) -> tuple[float, float]:
    """Returns maximum and final rise of the nll over its minimum before the change."""
    before = min(nll for update, nll in run["nll"] if update <= CHANGE)
    after = [nll - before for update, nll in run["nll"] if update > CHANGE]
    return max(after), after[-1]


def report(stored: Store, results: Path) -> None:
    """Writes the report and its figure."""
    models = stored.by_model(list(dict.fromkeys(run["model"] for run in stored.runs.values())))
    kinds, rows = list(next(iter(models.values()))[0]["right_of_cases"]), []
    figure, ((panel,),) = new_figure(size=(8, 4.5))
    for number, (name, seeds) in enumerate(models.items()):
        right = [side_by_side([percent(run["right_of_cases"][kind]) for run in seeds]) for kind in kinds]
        rises = [side_by_side([rise(run)[place] for run in seeds], 3) for place in (0, 1)]
        rows.append([name, ", ".join(str(run["seed"]) for run in seeds), *right, *rises])
        panel.plot(*zip(*seeds[0]["nll"]), label=name, **style(number))
    panel.axvline(CHANGE, color="0.6", linestyle=":")
    finish(panel, xlabel="updates on long documents", ylabel="validation nll, bits per token")
    figure.savefig(results / "selection.png")
    header = ["model", "seeds", *kinds, "maximum rise of nll", "at the end"]
    parts = ["# Selection loss", TEXT, table(header, rows), "![Validation loss](selection.png)"]
    write("selection", [*parts, *stored.provenance()], results)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains and scores all models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "selection", help="folder for corpora and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--top-t", nargs="+", type=int, default=[4, 2, 8, 1])
    parser.add_argument("--ablations", action="store_true", help="other phases, weights and temperatures")
    parser.add_argument("--documents", nargs=3, type=int, default=(8000, 800, 100), metavar=("SHORT", "LONG", "TEST"))
    args = parser.parse_args(argv)
    stored = Store(args.results / "selection.json")
    stored.add_call()
    runner = Runner(args.work, options=[*OPTIONS, *WIDTH], pace=PACE)
    runner.write_corpora(args.documents[:2], args.documents[2])
    for cell in cells(args.seeds, args.top_t, args.ablations):
        stored.add(cell.name, run_cell(runner, cell))
        print(f"{cell.model}, seed {cell.seed}: done", flush=True)
    report(stored, args.results)


if __name__ == "__main__":
    main()

"""The small-data recipe: short trainings from scratch, each with one thing changed, and their learning curves.

    docnmt recipe en_de_manuals --raw FOLDER --output work/en-de-manuals --until prepare
    python -m benchmarks.experiments.small_data --raw FOLDER [--updates 600] [--only base "dropout 0" ...]

Every variant of the sentence-level start of the handbooks' recipe sees as many tokens, so what has batches of twice the
tokens has half the updates. Validation losses are in bits a word, which vocabularies do not change. What was trained is
kept: a killed run goes on, and a further one adds what is new. Writes benchmarks/results/small_data.md and .png.
"""

import argparse
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Tuple

import yaml
from fairseq.data import data_utils

from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import RESULTS, ROOT, call, machine, table, write
from docnmt_fairseq import cli
from docnmt_fairseq.evaluation.plots import COLOURS
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import model
from docnmt_fairseq.recipes.result_files import read_json, write_json
from docnmt_fairseq.recipes.training import LAST, Budget, train, updates_of

RECIPE = named_recipes()["en_de_manuals"]
BASE = "as the recipe"
VALIDATIONS = 6  # of a training
COST = "cost.json"
WIDE = [
    word
    for side in ("encoder", "decoder")
    for word in f"--{side}-embed-dim 384 --{side}-ffn-embed-dim 1536 --{side}-attention-heads 6".split()
]

Curve = List[Tuple[float, float]]  # millions of target tokens seen, bits a word


@dataclass(frozen=True)
class Variant:
    """What differs from the recipe.

    Attributes:
        options: of fairseq-train, which win.
        without: flags of the recipe that are left out.
        batch: times the tokens of a batch, in as many times fewer updates.
        vocabulary: subwords; 0: the recipe's.
    """

    options: Tuple[str, ...] = ()
    without: Tuple[str, ...] = ()
    batch: int = 1
    vocabulary: int = 0


VARIANTS = {
    BASE: Variant(),
    "learning rate × 2": Variant(("--lr", "0.003")),
    "learning rate ÷ 2": Variant(("--lr", "0.00075")),
    "dropout 0": Variant(("--dropout", "0")),
    "dropout 0.3": Variant(("--dropout", "0.3")),
    "no label smoothing": Variant(("--label-smoothing", "0")),
    "pieces of 24 sentences": Variant(("--max-document-sentences", "24")),
    "batches × 2": Variant(batch=2),
    "post-norm": Variant(without=("--encoder-normalize-before", "--decoder-normalize-before")),
    "6 + 2 layers": Variant(("--encoder-layers", "6")),
    "width 384": Variant(tuple(WIDE)),
    "4,000 subwords": Variant(vocabulary=4000),
    "16,000 subwords": Variant(vocabulary=16000),
}


def budget_of(variant: Variant, updates: int) -> Budget:
    """Returns what a variant is trained with: the recipe's start, its warm-up as short as the training."""
    training = read_dataset_config(RECIPE).training
    assert training.start is not None
    known = [*training.options, *training.task_options["document_translation"], *training.start.options]
    kept = [word for word in known if word not in variant.without]
    updates //= variant.batch
    options = [*kept, "--warmup-updates", str(updates // 3), *variant.options]
    every = max(1, updates // VALIDATIONS)
    return Budget(training.size, updates, variant.batch * training.batch_tokens, every, options)


def data_of(work: Path, raw: Path, vocabulary: int) -> Path:
    """Returns the prepared data, which is prepared with another vocabulary if need be."""
    if not vocabulary:
        return work / "data"
    output, values = work / "vocabularies" / str(vocabulary), yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    values["prepare"]["vocab_size"] = vocabulary
    output.mkdir(parents=True, exist_ok=True)
    (output / "recipe.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    words = ["recipe", str(output / "recipe.yaml"), "--raw", str(raw), "--output", str(output), "--until", "prepare"]
    if cli.main(words):
        raise SystemExit(f"{' '.join(words)} failed")
    return output / "data"


def children_seconds() -> float:
    """Returns the seconds of CPU time that the processes begun here have had."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train_variant(name: str, data: Path, folder: Path, updates: int) -> None:
    """Trains a variant, or goes on with it, and notes what it cost."""
    budget = budget_of(VARIANTS[name], updates)
    known = read_json(folder / COST)["cpu_seconds"] if (folder / COST).exists() else 0.0
    if updates_of(folder / LAST) < budget.updates:
        before = children_seconds()
        folder.mkdir(parents=True, exist_ok=True)
        train(data / "data-bin", folder, model("sentence"), budget, 1, Machine(cpu=True), data.parent.name)
        write_json(folder / COST, {"cpu_seconds": known + children_seconds() - before})


def bits_a_word(folder: Path, data: Path, batch: int, tokens: int) -> Curve:
    """Returns the learning curve of a variant.

    Args:
        folder: of its training.
        data: it was trained on.
        batch: of the variant.
        tokens: of a batch of the recipe.
    """
    language = read_dataset_config(RECIPE).target_lang
    valid = data_utils.load_indexed_dataset(str(next((data / "data-bin").glob(f"valid.*.{language}.bin")))[:-4])
    ratio = valid.sizes.sum() / read_json(data / "manifest.json")["counts"]["valid"]["words"][language]
    return [(update * batch * tokens / 1e6, loss * ratio) for update, loss in validation_curve(folder / "train.log")]


def figure(curves: Dict[str, Curve], path: Path) -> None:
    """Draws the learning curves."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(drawn)
    axis = drawn.subplots()
    for number, (name, points) in enumerate(curves.items()):
        style = {"color": COLOURS[number % len(COLOURS)], "linestyle": "-" if number < len(COLOURS) else "--"}
        axis.plot(*zip(*points), label=name, **({"color": "0.1", "linewidth": 2.5} if name == BASE else style))
    axis.set(xlabel="tokens of batches seen, millions", ylabel="bits a word (validation)", yscale="log")
    axis.legend(frameon=False, ncols=2, fontsize="small")
    drawn.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "en-de-manuals", help="the recipe's output")
    parser.add_argument("--raw", type=Path, required=True, help="the recipe's --raw, for other vocabularies")
    parser.add_argument("--updates", type=int, default=600, help="of a training (default: 600)")
    parser.add_argument("--only", nargs="*", choices=VARIANTS, default=list(VARIANTS), help="train these only")
    args = parser.parse_args()
    folders = {name: args.work / "small" / f"{args.updates}-{name.replace(' ', '-')}" for name in VARIANTS}
    data = {name: data_of(args.work, args.raw, VARIANTS[name].vocabulary) for name in args.only}
    for name in args.only:
        train_variant(name, data[name], folders[name], args.updates)
    report(args, folders)


def report(args: argparse.Namespace, folders: Dict[str, Path]) -> None:
    """Writes the table and the figure of all variants that are trained."""
    tokens, rows, curves = read_dataset_config(RECIPE).training.batch_tokens, [], {}
    for name, folder in folders.items():
        if (folder / COST).exists():
            data = data_of(args.work, args.raw, VARIANTS[name].vocabulary)
            curves[name] = bits_a_word(folder, data, VARIANTS[name].batch, tokens)
            minutes = read_json(folder / COST)["cpu_seconds"] / 60
            rows.append([name, *(f"{bits:.2f}" for _, bits in curves[name]), f"{minutes:.1f}"])
    figure(curves, RESULTS / "small_data.png")
    marks = [f"{seen:.1f}" for seen, _ in next(iter(curves.values()))]
    parts = ["# A recipe for little data", machine(), f"`{call(args.raw)}`", TOLD.format(updates=args.updates)]
    parts += [table(["variant", *marks, "minutes of one core"], rows), "![Learning curves](small_data.png)"]
    write("small_data.md", "\n\n".join(parts))


TOLD = """\
Bits a word on the validation set after so many million tokens of batches (source or target, whichever is more), seed
1. The sentence-level start of the handbooks' recipe, made short: {updates} updates, a third of them warm-up; every
other row has one thing changed."""


if __name__ == "__main__":
    main()

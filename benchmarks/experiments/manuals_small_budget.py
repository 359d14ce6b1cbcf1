"""The handbooks' comparison at a size that an afternoon pays: all models, each seed with a start of its own.

    python -m benchmarks.experiments.manuals_small_budget --raw FOLDER [--seeds 1 2 3] [--models conditional han ...]
        [--updates 2000] [--pieces]

It is the recipe en_de_manuals with narrower models, fewer subwords and fewer updates. Run again, it goes on where it
was; the report is written after every model. The results keep the figures of models whose folders are gone, so that
seeds can be trained one by one, on several machines; models of one seed can be trained side by side, from copies of a
--work in which "sentence" is trained. --updates is how long models are trained after their start; --pieces is how
models translate that are trained already, or not yet. Writes benchmarks/results/manuals_small_budget_UPDATES.md and
.json, or ..._UPDATES_pieces.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from benchmarks.experiments.manuals import TestSet, distances_back
from benchmarks.experiments.manuals_report import DISTANCES
from benchmarks.lib import recipe_figures
from benchmarks.lib.machine import RESULTS, ROOT, table
from benchmarks.lib.progress import steps_told
from benchmarks.lib.recipe_figures import BASELINE
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.metrics.register import labels_of
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.evaluation.texts import read_references, read_text
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.scoring import metric_scores, metrics_of
from docnmt_fairseq.translate.view import DocumentView

NAME, CONSISTENCY = "manuals_small_budget", "register-consistency"
SUBWORDS, TOKENS = 4000, 2500  # of a batch
START_UPDATES, UPDATES, WARMUP, VALIDATE_EVERY = 5000, 2000, 600, 250
WIDTH, FEED_FORWARD, HEADS, LAYERS = 192, 768, 4, 3
NARROW = f"""
    --encoder-embed-dim {WIDTH} --encoder-ffn-embed-dim {FEED_FORWARD} --encoder-attention-heads {HEADS}
    --decoder-embed-dim {WIDTH} --decoder-ffn-embed-dim {FEED_FORWARD} --decoder-attention-heads {HEADS}
    --encoder-layers {LAYERS}
""".split()

# Models of the recipe, trained otherwise to see what they lack: the model, and the options that are changed.
WAYS: Dict[str, Tuple[str, List[str]]] = {
    "conditional-all": ("conditional", ["--context-top-t", "0"]),
    "conditional-faster": ("conditional", ["--lr", "0.0015"]),
    "conditional-context-faster": ("conditional", ["--context-lr-scale", "10"]),
    "conditional-short-pieces": ("conditional", ["--max-document-sentences", "8"]),
    "conditional-target-dropout": ("conditional-target", ["--source-context-dropout", "0.5"]),
    "conditional-target-dropout-quarter": ("conditional-target", ["--source-context-dropout", "0.25"]),
    "memory-3-xavier": ("memory-3", ["--context-init", "xavier"]),
}

READING = """\
The recipe `en_de_manuals` at a lower cost: width {width}, {layers} + 2 layers, {subwords:,} joint subwords, batches of
{tokens:,} tokens. A seed is a whole repetition: a sentence-level start of {start:,} updates of its own, from which
every model is trained for {updates:,} more, in which the learning rate falls to zero. Compare models of this table with
each other, not with larger ones. {seen}

`conditional-…`: trained otherwise, to see what it lacks: it attends to all sentences to the end (`all`); at a learning
rate of 0.0015 (`faster`); with 10 times the learning rate in what is not in the start (`context-faster`); from pieces
of documents of at most 8 sentences instead of 24, so that a batch has more of them (`short-pieces`); together with
`han-target` over the 8 translations before (`target`); so, but half or a quarter of the documents show nothing else of
their context in training (`target-dropout`, `target-dropout-quarter`). `memory-3-xavier`: without the factor that
begins at 0, with which the memory network starts as the sentence-level model."""
WHOLE = """\
Trained on pieces of documents of at most 24 sentences, models that see context translate documents whole."""
PIECES = """\
Models that see context translate as they are trained: in pieces of documents of at most 24 sentences."""


def dataset_of(seed: int, updates: int, pieces: bool = False) -> DatasetConfig:
    """The recipe with a small budget, its start of a seed.

    Args:
        seed: of the start.
        updates: after it.
        pieces: documents are translated in pieces, as in training.
    """
    recipe = read_dataset_config(named_recipes()["en_de_manuals"])
    training = recipe.training
    assert training.start is not None
    start = replace(
        training.start,
        updates=START_UPDATES,
        options=[*training.start.options, "--warmup-updates", str(WARMUP)],
        seed=seed,
    )
    training = replace(
        training,
        updates=updates,
        batch_tokens=TOKENS,
        validate_every=VALIDATE_EVERY,
        options=[*training.options, *NARROW],
        start=start,
    )
    title = "English-German handbooks, a small budget"
    view = DocumentView() if pieces else recipe.view
    prepare = {**recipe.prepare, "vocab_size": SUBWORDS}
    return replace(recipe, title=title, prepare=prepare, training=training, view=view)


def results_name(updates: int, pieces: bool) -> str:
    """What files of results are called, but for their endings."""
    return f"{NAME}_{updates}" + "_pieces" * pieces


def folder_of_seed(work: Path, updates: int, seed: int) -> Path:
    """Where the data and the models of a seed are."""
    return work / f"{updates}-updates" / f"seed-{seed}"


def add_trained_models(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say which of the trained models a report is of."""
    parser.add_argument("--work", type=Path, default=ROOT / "work" / NAME, help="folder with its models")
    parser.add_argument("--updates", type=int, default=UPDATES, help=f"of its models (default: {UPDATES})")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1], help="of its models")


def way_of(name: str) -> Model:
    """A model of the recipe, trained in one of the :data:`WAYS`."""
    base, changed = WAYS[name]
    usual = model(base)
    return replace(usual, options=lambda updates: [*usual.options(updates), *changed])


def distances_of(recipe: Recipe, name: str, seed: int) -> Dict[str, Dict[str, List[int]]]:
    """Returns right and shown by how far back a sentence shows the register, by test set; see ``manuals``."""
    found = {}
    dataset, paths = recipe.dataset, recipe.splits.get(recipe.options.raw)
    rule = RULES[dataset.target_lang]()
    for test_set, split in dataset.test_sets.items():
        source, target = (
            recipe.output / "data" / "text" / f"{split}.{side}" for side in (dataset.source_lang, dataset.target_lang)
        )
        references = read_references([target], source)
        labels = labels_of(references, rule, paths[dataset.scores.options["register_labels"][test_set]])
        text = ResultFiles(recipe.output / "models" / f"{name}-{seed}", test_set).text
        translations = {(name, seed): read_text(text, references, "score")}
        looked_at = TestSet(references, labels, list(distances_back(references, rule)), translations, [])
        counted = looked_at.right_by_distance((name, seed), rule)
        found[test_set] = {group: list(counts) for group, counts in counted.items()}
    return found


def consistency_of_references(recipe: Recipe) -> Dict[str, Optional[float]]:
    """Returns the share of documents in one register of every test set's reference, in %: what people wrote."""
    scores, paths, found = recipe.dataset.scores, recipe.splits.get(recipe.options.raw), {}
    for test_set, split in recipe.dataset.test_sets.items():
        text = recipe.output / "data" / "text"
        references = read_references([text / f"{split}.{recipe.dataset.target_lang}"])
        metrics = metrics_of(replace(scores, metrics=[CONSISTENCY]), test_set, references, paths, recipe.options.smoke)
        found[test_set] = metric_scores(metrics, references.streams[0], paths)[CONSISTENCY]["score"]
    return found


def by_distance(runs: Mapping[str, List[Dict[str, Any]]], test_set: str) -> str:
    """Returns a table: a row a model, a column a group of distances, all seeds together."""
    groups = list(next(iter(runs.values()))[0]["distances"][test_set])
    rows = []
    for name, seeds in runs.items():
        cells = []
        for group in groups:
            right, shown = (sum(counts) for counts in zip(*(run["distances"][test_set][group] for run in seeds)))
            cells.append(f"{100 * right / shown:.1f} ({shown})" if shown else "–")
        rows.append([name, *cells])
    return table(["model", *groups], rows)


def report(stored: Store, smoke: bool, updates: int, pieces: bool) -> str:
    """The report of all models trained so far with so many updates, and translated in one way."""
    dataset = dataset_of(1, updates)
    runs = recipe_figures.by_model(stored, [*dataset.models, *WAYS])
    lines = [recipe_figures.scores_of(dataset, runs, stored, smoke), "", *recipe_figures.losses_of(runs)]
    for test_set in dataset.test_sets:
        lines += ["", f"## {test_set}: register by distance", "", DISTANCES, "", by_distance(runs, test_set)]
    own = stored.facts.get("consistency of references", {})
    shares = ", ".join(f"{test_set} {share:.1f} %" for test_set, share in own.items() if share is not None)
    lines += ["", f"Documents in one register in the references themselves: {shares}."] if shares else []
    numbers = {"width": WIDTH, "layers": LAYERS, "subwords": SUBWORDS, "tokens": TOKENS, "start": START_UPDATES}
    lines += [
        "",
        READING.format(**numbers, updates=updates, seen=PIECES if pieces else WHOLE),
        "",
        *recipe_figures.made_with(stored),
    ]
    return "\n".join(lines) + "\n"


def keep(stored: Store, recipe: Recipe, name: str, seed: int) -> None:
    """Adds a model's figures, and what they were made with."""
    recipe_figures.remember(stored, recipe)
    stored.facts["consistency of references"] = consistency_of_references(recipe)
    figures = {**recipe_figures.figures_of(recipe, name, seed), "distances": distances_of(recipe, name, seed)}
    stored.add(f"{name}-{seed}", figures)


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", type=Path, help="the recipe's --raw")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / NAME, help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--models", nargs="+", help=f"default: those of the recipe; also {', '.join(WAYS)}")
    parser.add_argument(
        "--updates", type=int, default=UPDATES, help=f"of a model, after its start (default: {UPDATES})"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--pieces", action="store_true", help="translate documents in pieces, as in training")
    parser.add_argument("--smoke", action="store_true", help="made-up text, tiny models: figures mean nothing")
    args = parser.parse_args()

    for seed in args.seeds:
        dataset = dataset_of(seed, args.updates, args.pieces)
        output, written = folder_of_seed(args.work, args.updates, seed), results_name(args.updates, args.pieces)
        for name in args.models or dataset.models:
            names = tuple(dict.fromkeys((BASELINE, name)))
            options = Options(output, args.raw, names, (seed,), Machine(cpu=True), smoke=args.smoke)
            recipe = Recipe(dataset, options, {way: way_of(way) for way in WAYS})
            with alone_in(output), ending_on_signals():
                recipe.run()
            stored = Store(args.results / f"{written}.json")  # where another process may have written, too
            for one in names:
                keep(stored, recipe, one, seed)
            page = report(stored, args.smoke, args.updates, args.pieces)
            (args.results / f"{written}.md").write_text(page, encoding="utf-8")
            print(f"{name}, seed {seed}: done", flush=True)


if __name__ == "__main__":
    main()

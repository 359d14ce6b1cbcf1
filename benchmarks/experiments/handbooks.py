"""Studies of context on English-German handbooks, whose documents decide between du and Sie.

    python -m benchmarks.experiments.handbooks STUDY --raw FOLDER [--updates 4000] [--seeds 1 2 3] [--models ...]

Studies that train (finished models are skipped, results of earlier calls are kept):

    small-budget    the recipe en_de_manuals with narrow models; --pieces translates documents in chunks, as in training
    context-only    context on top of a finished sentence-level model: trained alone, with LoRA, or with everything
    talks-and-news  the same protocol on a small corpus in which context decides little

Studies of models trained by small-budget:

    by-model        register, CXMI and BLEU of all models, from the stored results
    by-updates      the same for one model (--models) by number of updates
"""

import argparse
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.experiments import handbooks_analysis as analysis
from benchmarks.experiments import handbooks_report as report
from benchmarks.lib.recipe_results import BASELINE, add_counts, parameters, results_of, score_sections
from benchmarks.lib.reporting import RESULTS, ROOT, Store, progress_logged, table, write
from docnmt_fairseq.recipes.dataset import DatasetConfig, named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.recipe import Options, Recipe
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.translate.view import DocumentView

RECIPE, SMALL_BUDGET = "en_de_manuals", "manuals_small_budget"
CONTEXT_ONLY, TALKS = "manuals_context_only", "talks_and_news"
FROZEN = ["--freeze-sentence-model"]
VARIANTS = {  # models of the recipe with additional options
    "conditional-context-faster": ("conditional", ["--context-lr-scale", "10"]),
    "conditional-target-dropout": ("conditional-target", ["--source-context-dropout", "0.5"]),
    "conditional-frozen": ("conditional", FROZEN),
    "conditional-lora": (
        "conditional",
        [*FROZEN, "--lora-rank", "8", "--lora-alpha", "16", "--lora-on", "q,k,v,out,fc1,fc2"],
    ),
}
NARROW = shlex.split(
    "--encoder-embed-dim 192 --encoder-ffn-embed-dim 768 --encoder-attention-heads 4 --encoder-layers 3 "
    "--decoder-embed-dim 192 --decoder-ffn-embed-dim 768 --decoder-attention-heads 4"
)


def variant(name: str) -> Model:
    """Returns a model of the recipe with the additional options of ``VARIANTS``."""
    base, changed = VARIANTS[name]
    usual = model(base)
    return replace(usual, options=lambda updates: [*usual.options(updates), *changed])


def small_dataset(seed: int, updates: int, pieces: bool = False) -> DatasetConfig:
    """Returns the recipe with narrow models and few updates.

    Args:
        seed: seed of the sentence-level start.
        updates: updates of each model after the start.
        pieces: translate documents in chunks, as in training.
    """
    recipe = read_dataset_config(named_recipes()[RECIPE])
    training = recipe.training
    assert training.start is not None
    start = replace(
        training.start, updates=5000, options=[*training.start.options, "--warmup-updates", "600"], seed=seed
    )
    training = replace(
        training,
        updates=updates,
        batch_tokens=2500,
        validate_every=250,
        options=[*training.options, *NARROW],
        start=start,
    )
    view = DocumentView() if pieces else recipe.view
    prepare = {**recipe.prepare, "vocab_size": 4000}
    return replace(
        recipe, title="English-German handbooks, small budget", prepare=prepare, training=training, view=view
    )


def seed_folder(work: Path, updates: int, seed: int) -> Path:
    """Returns the folder with data and models of a seed."""
    return work / f"{updates}-updates" / f"seed-{seed}"


def recipe_for(
    dataset: DatasetConfig, output: Path, names: Sequence[str], seed: int, args: Any, **changes: Any
) -> Recipe:
    """Returns a recipe for models, with those of ``VARIANTS``.

    Args:
        dataset: configuration.
        output: output folder.
        names: models.
        seed: seed.
        args: options of the command.
        changes: other options of the recipe; ``cls``: class of the recipe.
    """
    cls, raw = changes.pop("cls", Recipe), changes.pop("raw", args.raw)
    options = Options(output, raw, tuple(names), (seed,), Machine(cpu=True), smoke=args.smoke, **changes)
    return cls(dataset, options, {name: variant(name) for name in VARIANTS})


def run_models(
    recipes: Iterator[tuple[str, int, Recipe]],
    path: Path,
    pages: Callable[[Store], list[str]],
    more: Callable[[Recipe, str, int], dict] = lambda *_: {},
    facts: Callable[[Store, Recipe], None] = lambda *_: None,
) -> None:
    """Trains models with the baseline; stores results and writes the report after each model.

    Args:
        recipes: model, seed and recipe.
        path: JSON file with results.
        pages: paragraphs of the report.
        more: additional results of a model.
        facts: records additional facts of a recipe.
    """
    for name, seed, recipe in recipes:
        recipe.run()
        stored = Store(path)  # other processes may have added results
        add_counts(stored, recipe)
        facts(stored, recipe)
        for one in dict.fromkeys((BASELINE, name)):
            stored.add(f"{one}-{seed}", {**results_of(recipe, one, seed), **more(recipe, one, seed)})
        write(path.stem, pages(stored), path.parent)
        print(f"{name}, seed {seed}: done", flush=True)


def small_budget(args: argparse.Namespace) -> None:
    """Trains the models of the small budget."""
    result = results_name(args.updates, args.pieces)

    def recipes() -> Iterator[tuple[str, int, Recipe]]:
        for seed in args.seeds:
            dataset = small_dataset(seed, args.updates, args.pieces)
            for name in args.models or dataset.models:
                output = seed_folder(args.work, args.updates, seed)
                yield name, seed, recipe_for(dataset, output, dict.fromkeys((BASELINE, name)), seed, args)

    def facts(stored: Store, recipe: Recipe) -> None:
        stored.facts["consistency of references"] = analysis.consistency_of_references(recipe)

    def pages(stored: Store) -> list[str]:
        dataset = small_dataset(1, args.updates)
        runs = stored.by_model([*dataset.models, *VARIANTS])
        parts = score_sections(dataset, runs, stored, args.smoke)
        for test_set in dataset.test_sets:
            parts += [f"## {test_set}: register by distance", report.DISTANCES, report.by_distance(runs, test_set)]
        shares = stored.facts["consistency of references"].items()
        shown = ", ".join(f"{test_set} {share:.1f} %" for test_set, share in shares if share is not None)
        parts += [f"Documents with one register only in the references: {shown}."] if shown else []
        return [*parts, report.small_budget_text(args.updates, args.pieces), *stored.provenance()]

    run_models(recipes(), args.results / f"{result}.json", pages, analysis.distances_of_model, facts)


def results_name(updates: int, pieces: bool) -> str:
    """Returns the file name of the results of the small budget."""
    return f"{SMALL_BUDGET}_{updates}" + "_pieces" * pieces


class FromFinishedModel(Recipe):
    """Recipe whose models start from an existing checkpoint."""

    checkpoint: Path

    def _train_start(self, data: str) -> Path | None:
        return self.checkpoint


def context_only(args: argparse.Namespace) -> None:
    """Trains context on top of the finished sentence-level models of the small budget."""
    stored = Store(args.results / f"{CONTEXT_ONLY}.json")
    budget = [args.finished, args.updates]
    if stored.facts.get("budget", budget) != budget:
        raise SystemExit(f"{stored.path}: has models of other --finished and --updates; use another --results")
    dataset_of = {seed: small_dataset(seed, args.updates) for seed in args.seeds}
    models = args.models or [BASELINE, "conditional-frozen", "conditional-lora", "conditional"]

    def recipes() -> Iterator[tuple[str, int, Recipe]]:
        for seed in args.seeds:
            finished = seed_folder(args.initial_work, args.finished, seed) / "models" / f"{BASELINE}-{seed}"
            require(finished / "scores.json", "small-budget --models sentence")
            for name in models:
                output, names = seed_folder(args.work, args.updates, seed), dict.fromkeys((BASELINE, name))
                recipe = recipe_for(dataset_of[seed], output, names, seed, args, cls=FromFinishedModel)
                recipe.checkpoint = finished / BEST
                yield name, seed, recipe

    def facts(stored: Store, recipe: Recipe) -> None:
        stored.facts["budget"] = budget

    def more(recipe: Recipe, name: str, seed: int) -> dict:
        return {"parameters": parameters(recipe.output / "models" / f"{name}-{seed}" / "train.log")}

    def pages(stored: Store) -> list[str]:
        runs = stored.by_model([BASELINE, *VARIANTS, "conditional"])
        rows = [[name, *(f"{count:,}" for count in seeds[0]["parameters"])] for name, seeds in runs.items()]
        dataset = replace(
            dataset_of[args.seeds[0]], title="Handbooks: context on top of a finished sentence-level model"
        )
        return [
            *score_sections(dataset, runs, stored, args.smoke),
            table(["model", "parameters", "trained"], rows),
            report.CONTEXT_ONLY.format(finished=args.finished, updates=args.updates),
            *stored.provenance(),
        ]

    run_models(recipes(), stored.path, pages, more, facts)


def talks_and_news(args: argparse.Namespace) -> None:
    """Trains the models of the small corpus."""
    dataset = read_dataset_config(Path(__file__).with_name(f"{TALKS}.yaml"))

    def recipes() -> Iterator[tuple[str, int, Recipe]]:
        for seed in args.seeds:
            for name in args.models or dataset.models:
                yield name, seed, recipe_for(dataset, args.work, dict.fromkeys((BASELINE, name)), seed, args)

    def pages(stored: Store) -> list[str]:
        runs = stored.by_model(dataset.models)
        return [*score_sections(dataset, runs, stored, args.smoke), report.TALKS, *stored.provenance()]

    run_models(recipes(), args.results / f"{TALKS}.json", pages)


def require(path: Path, study: str) -> Path:
    """Returns a path; exits with the study that makes it if it does not exist."""
    if not path.exists():
        raise SystemExit(f"{path}: does not exist; run {study} first, with the same --work, --updates and --seeds")
    return path


def summarise(args: argparse.Namespace) -> None:
    """Writes by-model or by-updates from the stored results of the small budget."""
    if args.study == "by-model":
        path = require(args.results / f"{results_name(args.updates, args.pieces)}.json", "small-budget")
        report.by_model(Store(path), args.updates, args.results)
    else:
        stores = {}
        for path in args.results.glob(f"{SMALL_BUDGET}_*.json"):
            updates = int(path.stem.split("_")[3])
            if path.stem == results_name(updates, args.pieces):
                stores[updates] = Store(path)
        report.by_updates(stores, (args.models or ["conditional"])[0], args.pieces, args.results)


STUDIES: dict[str, tuple[Callable[[argparse.Namespace], None], str]] = {
    "small-budget": (small_budget, SMALL_BUDGET),
    "context-only": (context_only, CONTEXT_ONLY),
    "talks-and-news": (talks_and_news, TALKS),
    "by-model": (summarise, SMALL_BUDGET),
    "by-updates": (summarise, SMALL_BUDGET),
}


@progress_logged()
def main(argv: Sequence[str] | None = None) -> None:
    """Runs a study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--raw", type=Path, help="--raw of the recipe: text, registers, projects of documents")
    parser.add_argument("--work", type=Path, help="folder with data and models (default: work/STUDY)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--models", nargs="+", help=f"default: those of the study; also {', '.join(VARIANTS)}")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--updates", type=int, default=2000, help="updates after the start (default: 2000)")
    parser.add_argument("--pieces", action="store_true", help="translate documents in chunks, as in training")
    parser.add_argument("--finished", type=int, default=4000, help="context-only: updates of the finished model")
    parser.add_argument("--initial-work", type=Path, help="context-only: --work of small-budget")
    parser.add_argument("--smoke", action="store_true", help="artificial text and tiny models, to test the study")
    args = parser.parse_args(argv)
    run, folder = STUDIES[args.study]
    args.work = args.work or ROOT / "work" / folder
    args.initial_work = args.initial_work or ROOT / "work" / SMALL_BUDGET
    run(args)


if __name__ == "__main__":
    main()

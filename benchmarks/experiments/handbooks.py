"""Studies of context on English-German handbooks, whose documents decide between du and Sie.

    python -m benchmarks.experiments.handbooks STUDY --raw FOLDER [--updates 4000] [--seeds 1 2 3] [--models ...]

Studies that train (finished models are skipped, results of earlier calls are kept):

    small-budget    the recipe en_de_manuals with narrow models; --pieces translates documents in chunks, as in training
    context-only    context on top of a finished sentence-level model: trained alone, with LoRA, or with everything
    oracle          a sentence-level model whose input names the project and the register of its document
    talks-and-news  the same protocol on a small corpus in which context decides little

Studies of models trained by small-budget:

    target-context  translation after reference translations of previous sentences (docnmt translate --target-context)
    by-project      register by project, next to the registers of its training text
    register-worth  BLEU of a sentence-level translation with lines of the right register inserted
    by-model        register, CXMI and BLEU of all models, from the stored results
    by-updates      the same for one model (--models) by number of updates
    recipe          report on the output of docnmt recipe en_de_manuals (--work)
"""

import argparse
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.experiments import handbooks_analysis as analysis
from benchmarks.experiments import handbooks_report as report
from benchmarks.lib.recipe_results import BASELINE, add_counts, parameters, results_of, score_sections
from benchmarks.lib.reporting import RESULTS, ROOT, Store, command, machine, progress_logged, table, write
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import read_references, read_text, segments
from docnmt_fairseq.recipes.dataset import DatasetConfig, SplitConfig
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import SEARCH, Model, model
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.recipe import Options, Recipe
from docnmt_fairseq.recipes.results import ResultFiles, read_scores
from docnmt_fairseq.recipes.scoring import bleu_significance, make_metrics, metric_scores, text_scores
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator
from docnmt_fairseq.translate.view import DocumentView

RECIPE, SMALL_BUDGET, CONTEXT_ONLY, TALKS = (
    "en_de_manuals",
    "manuals_small_budget",
    "manuals_context_only",
    "talks_and_news",
)
FROZEN = ["--freeze-sentence-model"]
VARIANTS = {  # models of the recipe with additional options
    "conditional-all": ("conditional", ["--context-top-t", "0"]),
    "conditional-faster": ("conditional", ["--lr", "0.0015"]),
    "conditional-context-faster": ("conditional", ["--context-lr-scale", "10"]),
    "conditional-short-pieces": ("conditional", ["--max-document-sentences", "8"]),
    "conditional-target-dropout": ("conditional-target", ["--source-context-dropout", "0.5"]),
    "conditional-target-dropout-quarter": ("conditional-target", ["--source-context-dropout", "0.25"]),
    "memory-3-xavier": ("memory-3", ["--context-init", "xavier"]),
    "conditional-frozen": ("conditional", FROZEN),
    "conditional-lora": (
        "conditional",
        [*FROZEN, "--lora-rank", "8", "--lora-alpha", "16", "--lora-on", "q,k,v,out,fc1,fc2"],
    ),
}
NARROW = [
    "--encoder-embed-dim",
    "192",
    "--encoder-ffn-embed-dim",
    "768",
    "--encoder-attention-heads",
    "4",
    "--encoder-layers",
    "3",
    "--decoder-embed-dim",
    "192",
    "--decoder-ffn-embed-dim",
    "768",
    "--decoder-attention-heads",
    "4",
]
FACTS = {"test": (False, False), "project": (True, False), "register": (False, True), "both": (True, True)}
LEFT_OUT = 0.25  # probability of leaving out a fact in training
LABELS = "test.register.tsv"
OWN, REFERENCES, OTHERS = "own translations", "references", "references of other documents"


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


def oracle(args: argparse.Namespace) -> None:
    """Trains a sentence-level model whose source sentences start with facts about their document."""
    rows = []
    for seed in args.seeds:
        work = seed_folder(args.work, args.updates, seed)
        start = require((work / "models" / "start" / BEST).absolute(), "small-budget")
        output = work / "oracle"
        dataset = oracle_dataset(seed, args.updates, (work / "data").absolute(), start)
        recipe = recipe_for(dataset, output, [BASELINE], seed, args, raw=output / "raw")
        write_oracle_corpus(work / "data" / "text", args.raw, output / "raw", seed)
        recipe.run()
        folder, text = output / "models" / f"{BASELINE}-{seed}", output / "data" / "text"
        references = read_references([text / "test.de"], text / "test.en")
        translations = {name: read_text(ResultFiles(folder, name).text, references, "score") for name in FACTS}
        for name, translation in translations.items():
            scores = read_scores(ResultFiles(folder, name), significance=False)
            registers = [scores["metrics"][metric]["score"] for metric in ("register", "register-of-all")]
            change = report.significance(
                bleu_significance(references, translations["test"], translation, "none"), name == "test"
            )
            known = {"test": "nothing", "both": "project and register"}.get(name, name)
            rows.append(
                [seed, known, f"{scores['bleu']:.2f}", *change, f"{scores['chrf']:.2f}", *map(report.shown, registers)]
            )
    header = ["seed", "known", "BLEU", "difference to nothing", "95 %", "p", "chrF", "register", "of all"]
    facts = [f"`{command(args.raw)}`  \n{machine()}"]
    write("manuals_told", ["# Upper bound of document facts", table(header, rows), report.ORACLE, *facts], args.results)


def oracle_dataset(seed: int, updates: int, data: Path, start: Path) -> DatasetConfig:
    """Returns the small budget's recipe for the corpus with facts.

    Args:
        seed: seed of the start.
        updates: updates after the start.
        data: data of the small budget, whose vocabulary is reused.
        start: checkpoint of the start.
    """
    usual = small_dataset(seed, updates)
    names = ["train", "valid", *FACTS]
    labels = {**usual.scores.options, "register_labels": dict.fromkeys(FACTS, LABELS)}
    options = [*usual.training.options, "--finetune-from-model", str(start)]
    return replace(
        usual,
        title="Handbooks with facts about the document",
        splits={name: SplitConfig("delimited", [[f"{name}.en", f"{name}.de"]]) for name in names},
        prepare={"reuse": str(data)},
        training=replace(usual.training, options=options, start=None),
        scores=replace(usual.scores, options=labels),
    )


def write_oracle_corpus(text: Path, raw: Path, folder: Path, seed: int) -> None:
    """Writes training, validation and test sets whose source sentences start with project and register.

    Args:
        text: prepared text of the small budget.
        raw: folder with the projects of the documents.
        folder: output folder.
        seed: seed of the facts that are left out in training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rule, chance = RULES["de"](), random.Random(seed)
    sets = {"train": ("train", None), "valid": ("valid", FACTS["both"])}
    sets |= {name: ("test", shown) for name, shown in FACTS.items()}
    for name, (split, shown) in sets.items():
        read = read_references([text / f"{split}.de"], text / f"{split}.en")
        projects = projects_of(raw, split)
        documents = []
        for source, reference in zip(read.source or [], read.streams[0]):
            known = (projects.get(tuple(source)), document_register(reference, rule))
            draw = lambda: [chance.random() >= LEFT_OUT for _ in known]  # noqa: E731, B023
            documents.append([with_facts(sentence, known, shown or draw()) for sentence in source])
        for side, content in (("en", documents), ("de", read.streams[0])):
            lines = "".join("\n".join([*sentences, "", ""]) for sentences in content)
            (folder / f"{name}.{side}").write_text(lines, encoding="utf-8")
    shutil.copyfile(raw / LABELS, folder / LABELS)


def projects_of(raw: Path, split: str) -> dict[tuple[str, ...], str]:
    """Returns the project of every document of a split, by its normalised source sentences."""
    lines = (raw / f"{split}.en").read_text(encoding="utf-8").split("\n")
    rows = (raw / f"{split}.documents.tsv").read_text(encoding="utf-8").splitlines()
    found = {}
    for first, number, project in (row.split("\t")[:3] for row in rows):
        found[tuple(normalise(line) for line in lines[int(first) : int(first) + int(number)])] = project
    return found


def document_register(sentences: Iterable[str], rule: RegisterRule) -> str | None:
    """Returns the most frequent unambiguous register of a document, None if there is none."""
    found = Counter(filter(None, (rule.register_of(sentence, unambiguous_only=True) for sentence in sentences)))
    return found.most_common(1)[0][0] if found else None


def with_facts(sentence: str, facts: Sequence[str | None], shown: Sequence[bool]) -> str:
    """Returns a source sentence with the known facts in front of it."""
    known = ", ".join(fact for fact, keep in zip(facts, shown) if keep and fact is not None)
    return f"{known}: {sentence}" if known else sentence


def target_context(args: argparse.Namespace) -> None:
    """Translates with reference translations of the previous sentences in place of the model's own."""
    for seed in args.seeds:
        output = seed_folder(args.work, args.updates, seed)
        recipe = recipe_for(
            small_dataset(seed, args.updates), output, args.models or ["conditional-target"], seed, args
        )
        for name in args.models or ["conditional-target"]:
            require(output / "models" / f"{name}-{seed}" / "test.txt", f"small-budget --models {name}")
            rows = target_context_rows(recipe, name, seed)
            stored = Store(args.results / "manuals_corrected.json")
            stored.add_call(args.raw)
            run = {"model": name, "updates": args.updates, "seed": seed, "rows": rows}
            stored.add(f"{name}-{args.updates}-{seed}", run)
            write("manuals_corrected", report.target_context(stored), args.results)


def target_context_rows(recipe: Recipe, name: str, seed: int) -> list[list[str]]:
    """Returns three rows per test set: test set, target context, scores."""
    folder, data, dataset = recipe.output / "models" / f"{name}-{seed}", recipe.output / "data", recipe.dataset
    paths, search = recipe.splits.get(recipe.options.raw), SearchOptions(**SEARCH)
    translator = DocumentTranslator.from_checkpoint(
        folder / BEST, data=data, view=dataset.document_view, search=search, cpu=True
    )
    rows = []
    for test_set, split in dataset.test_sets.items():
        source, target = (data / "text" / f"{split}.{side}" for side in (dataset.source_lang, dataset.target_lang))
        references, text = read_references([target], source), list(read_lines(source))
        own, right = read_text(ResultFiles(folder, test_set).text, references, "score"), segments(references.streams[0])
        half = len(right) // 2
        found = {OWN: own}
        for context, sentences in ((REFERENCES, right), (OTHERS, [*right[half:], *right[:half]])):
            aligned = analysis.aligned(references, sentences, len(text))
            lines = translator.translate_lines([text], target_context=[aligned])[0]
            found[context] = [[lines[number - 1].text for number in document] for document in references.lines]
        metrics = make_metrics(dataset.scores, test_set, references, paths, recipe.options.smoke)
        for context, translation in found.items():
            scores = metric_scores(metrics, translation, paths)
            bleu = text_scores(segments(translation), right, "none")["bleu"]
            change = report.significance(bleu_significance(references, own, translation, "none"), context == OWN)
            registers = [scores[one]["score"] for one in ("register", "register-of-all", "register-consistency")]
            rows.append([test_set, context, f"{bleu:.2f}", *change, *map(report.shown, registers)])
    return rows


def analyse(args: argparse.Namespace) -> None:
    """Writes by-project or register-worth for models of the small budget."""
    rule, parts = RULES["de"](), []
    test_sets = read_dataset_config(named_recipes()[RECIPE]).test_sets
    training = analysis.training_registers(args.raw, rule) if args.study == "by-project" else {}
    for seed in args.seeds:
        work = seed_folder(args.work, args.updates, seed)
        require(work / "models", "small-budget")
        for name, split in test_sets.items():
            read = analysis.read_test_set(work, split, name, args.raw, rule)
            parts.append(f"## {name}, seed {seed}")
            if args.study == "by-project":
                parts.append(report.by_project(read, analysis.marked_lines(read, rule), training))
            else:
                parts.append(report.register_worth(read, rule))
    titles = {"by-project": "Register by project", "register-worth": "Value of the right register in BLEU"}
    facts = [report.READING[args.study], f"`{command(args.raw)}`  \n{machine()}"]
    result = {"by-project": "register_by_project", "register-worth": "register_worth"}[args.study]
    write(result, [f"# {titles[args.study]}", *parts, *facts], args.results)


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


def recipe_report(args: argparse.Namespace) -> None:
    """Writes the report on the output of the recipe."""
    rule = RULES["de"]()
    test_sets = {
        name: analysis.read_test_set(args.work, split, name, args.raw, rule)
        for name, split in read_dataset_config(named_recipes()[RECIPE]).test_sets.items()
    }
    report.recipe(args.work, args.results, test_sets, rule, command(args.raw))


STUDIES: dict[str, tuple[Callable[[argparse.Namespace], None], str]] = {
    "small-budget": (small_budget, SMALL_BUDGET),
    "context-only": (context_only, CONTEXT_ONLY),
    "oracle": (oracle, SMALL_BUDGET),
    "talks-and-news": (talks_and_news, TALKS),
    "target-context": (target_context, SMALL_BUDGET),
    "by-project": (analyse, SMALL_BUDGET),
    "register-worth": (analyse, SMALL_BUDGET),
    "by-model": (summarise, SMALL_BUDGET),
    "by-updates": (summarise, SMALL_BUDGET),
    "recipe": (recipe_report, "en-de-manuals"),
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

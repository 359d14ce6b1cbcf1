"""Models of a suite, trained on the same budget: accuracy by distance, scores and learning curves.

    python -m benchmarks.experiments.comparison                                   artificial documents
    python -m benchmarks.experiments.comparison --part text --raw FOLDER          English-German documents
    python -m benchmarks.experiments.comparison --suite layers [--part text ...]  another file of suites/

Minutes per model on one core. Finished models are skipped; the report is written after every model.
"""

import argparse
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

from benchmarks.lib.recipe_results import parameters, validation_curve
from benchmarks.lib.reporting import (
    RESULTS,
    ROOT,
    Store,
    finish,
    new_figure,
    progress_logged,
    side_by_side,
    style,
    table,
    write,
)
from docnmt_fairseq import cli
from docnmt_fairseq.evaluation.synth_report import build_report
from docnmt_fairseq.recipes.dataset import DatasetConfig, named_recipes, read_dataset_config
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.processes import PLUGIN, Machine, fairseq, run_to
from docnmt_fairseq.recipes.recipe import Options, Recipe
from docnmt_fairseq.recipes.training import BEST

SUITES = Path(__file__).parent / "suites"
CORPUS = shlex.split(
    "--nouns 9 --places 10 --verbs 6 --fillers 10 --names 4 --topics 6 --ambiguous-words 2 --words-per-sentence 4 4 "
    "--introductions 3 --max-distance 10 --sentences-per-document 22 26 --train-documents 4000 --valid-documents 20 "
    "--test-documents 150 --seed 1"
)
PARTS = {"synthetic": "Artificial documents", "text": "English-German documents"}
RECIPES = {"synthetic": Path(__file__).with_name("artificial_documents.yaml"), "text": named_recipes()["en_de_small"]}
PARAGRAPHS = ["--paragraph-positions", "sinusoidal"]  # formality is decided per paragraph
BINS = ((1, 1), (2, 2), (3, 3), (4, 6), (7, 10))
ALL = (BINS[0][0], BINS[-1][1])
EXPLANATION = """\
Same optimizer, updates and tokens per update for all models (`benchmarks/experiments/suites/{suite}.yaml`); seeds in
order. nll: lowest validation loss in bits per token. Artificial documents have 22 to 26 sentences of 4 words, with
words decided by a sentence 1 to 10 sentences back: pronouns, ambiguous words, formality. 3 + 1 layers, width 64."""
_LOSS = re.compile(r'"valid_nll_loss": "([\d.]+)"')


@dataclass(frozen=True)
class Suite:
    """Models of a file in suites/.

    Attributes:
        title: title of the report.
        question: what the suite compares.
        variants: architecture (without size) and options of fairseq-train by model name.
        recipe_models: models of docnmt recipe.
        parts: models of a part; default: all.
        training: changes of the training configuration by part; ``more_options`` are appended.
    """

    title: str
    question: str
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    recipe_models: list[str] = field(default_factory=list)
    parts: dict[str, list[str]] = field(default_factory=dict)
    training: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str) -> "Suite":
        """Returns the suite of a file."""
        return cls(**yaml.safe_load((SUITES / f"{name}.yaml").read_text(encoding="utf-8")))

    def models(self, part: str) -> dict[str, Model]:
        """Returns the models of a part."""
        found = {name: model(name) for name in self.recipe_models}
        for name, entry in self.variants.items():
            options = list(map(str, entry.get("options", [])))
            found[name] = Model("document_translation", entry["arch"], lambda updates, options=options: options)
        return {name: one for name, one in found.items() if name in self.parts.get(part, found)}

    def dataset(self, part: str) -> DatasetConfig:
        """Returns the data set of a part with the budget of the suite."""
        dataset, changes = read_dataset_config(RECIPES[part]), dict(self.training.get(part, {}))
        options = [*changes.pop("options", dataset.training.options), *changes.pop("more_options", [])]
        vocabulary = {"vocab_size": 4000} if part == "text" else {}
        training = replace(dataset.training, **changes, options=options)
        return replace(dataset, prepare={**dataset.prepare, **vocabulary}, training=training)


def corpus_of(folder: Path) -> Path:
    """Returns the folder of the artificial corpus, which is written if it does not exist."""
    if not (folder / "lexicon.json").exists() and cli.main(["synth", "--output", str(folder), *CORPUS]):
        raise SystemExit(1)
    return folder


def find_similar(recipe: Recipe, folder: Path) -> None:
    """Finds similar sentences for the data-bin, by CA-SEM vectors from the embeddings of a trained model."""
    data, vectors = recipe.output / "data", recipe.output / "vectors.npz"
    if vectors.exists():
        return
    corpus, made = data / "subword" / f"train.{recipe.dataset.source_lang}", vectors.with_name("vectors.partial.npz")
    fit = ["fit", "--path", str(folder / BEST), "--data", str(data), "--corpus", str(corpus), "--output", str(made)]
    for words in (fit, ["neighbours", "--model", str(made), str(data)]):
        if cli.main(["embed", *words]):
            raise SystemExit(1)
    made.rename(vectors)


def results_of(part: str, recipe: Recipe, corpus: Path, name: str, seed: int) -> dict[str, Any]:
    """Returns scores, curve, parameters and, for artificial documents, right translations by kind and distance."""
    folder, scores = recipe.output / "models" / f"{name}-{seed}", ("bleu", "chrf", "bleu_signature", "chrf_signature")
    known = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {
        "part": part,
        "model": name,
        "seed": seed,
        "updates": recipe.budget.updates,
        "parameters": parameters(folder / "train.log")[0],
        "curve": validation_curve(folder / "train.log"),
        **{score: known[score] for score in scores},
    }
    if part == "synthetic":
        return {**found, "right_of_cases": right_of_cases(corpus, folder / "generate.log")}
    if recipe.models[name].task == "document_translation":
        found["nll_without_context"] = loss_without_context(recipe, name, folder)
    return found


def right_of_cases(corpus: Path, log: Path) -> dict[str, dict[str, list[int]]]:
    """Returns {kind: {distance: [right, cases]}} of a translation of artificial test documents."""
    found = build_report(corpus, "test", {"": log}).systems[""]["phenomena"]["by_kind_and_distance"]
    return {
        kind: {distance: [figure["right"], figure["cases"]] for distance, figure in figures.items()}
        for kind, figures in found.items()
    }


def loss_without_context(recipe: Recipe, name: str, folder: Path) -> float:
    """Returns the validation loss in bits per token with all context hidden."""
    log = folder / "valid_none.log"
    if not log.exists():
        chosen, tokens = recipe.models[name], str(recipe.budget.batch_tokens)
        words = [*fairseq("validate"), str(recipe.output / "data" / "data-bin"), "--user-dir", str(PLUGIN)]
        words += ["--task", chosen.task, "--path", str(folder / BEST), "--valid-subset", "valid", "--context", "none"]
        words += ["--max-tokens", tokens, "--log-format", "json", *Machine(cpu=True).options()]
        run_to(words, log)
    return float(_LOSS.findall(log.read_text(encoding="utf-8"))[-1])


def accuracy(run: Mapping[str, Any], kind: str, low: int, high: int) -> float | None:
    """Returns the accuracy of a run on a kind of words in a range of distances; None without cases."""
    figures = run["right_of_cases"].get(kind, {}).items()
    right, cases = map(sum, zip((0, 0), *(figure for distance, figure in figures if low <= int(distance) <= high)))
    return right / cases if cases else None


def distance_table(models: Mapping[str, Sequence[dict]], kind: str, bins: Sequence[tuple[int, int]] = BINS) -> str:
    """Returns the accuracy on a kind in % by distance: one row per model."""
    rows = [
        [name, *(side_by_side([accuracy(run, kind, *ends) for run in seeds], factor=100) for ends in bins)]
        for name, seeds in models.items()
    ]
    return table(["model", *("-".join(map(str, dict.fromkeys(ends))) for ends in bins)], rows)


def report(stored: Store, suite: Suite, name: str, results: Path) -> None:
    """Writes the report and its figures."""
    result = name_of(name)
    parts, ceilings = (
        [f"# {suite.title}", suite.question.strip(), EXPLANATION.format(suite=name)],
        stored.facts["ceilings"],
    )
    for part, title in PARTS.items():
        models = stored.by_model([*suite.recipe_models, *suite.variants], part=part)
        if not models:
            continue
        kinds, rows = sorted(ceilings) if part == "synthetic" else [], []
        for label, seeds in models.items():
            shares = [side_by_side([accuracy(run, kind, *ALL) for run in seeds], factor=100) for kind in kinds]
            scores = [side_by_side([run[score] for run in seeds], 2) for score in ("bleu", "chrf")]
            losses = [side_by_side([min((loss for _, loss in run["curve"]), default=None) for run in seeds], 3)]
            losses += [side_by_side([run.get("nll_without_context") for run in seeds], 3)] if part == "text" else []
            rows.append([label, f"{seeds[0]['parameters']:,}", *losses, *scores, *shares])
        header = ["model", "parameters", "nll", *(["without context"] if part == "text" else []), "BLEU", "chrF"]
        updates = ", ".join(sorted({f"{run['updates']:,}" for seeds in models.values() for run in seeds}))
        parts += [f"## {title}", f"{updates} updates.", table([*header, *(f"{kind}, %" for kind in kinds)], rows)]
        for kind in kinds:
            parts += [f"**{kind}**, right in % by distance ({100 * ceilings[kind]:.1f} % at best without context):"]
            parts += [distance_table(models, kind)]
        file = f"{result}_{part}.png"
        draw(models, kinds, ceilings).savefig(results / file)
        parts.append(f"![{title}]({file})")
    write(result, [*parts, *stored.provenance()], results)


def draw(models: Mapping[str, Sequence[dict]], kinds: Sequence[str], ceilings: Mapping[str, float]) -> Any:
    """Returns a figure: accuracy by distance for each kind, and learning curves (means over seeds)."""
    figure, (panels,) = new_figure(1, len(kinds) + 1, (4.5 * (len(kinds) + 1), 4.5))
    for number, (name, seeds) in enumerate(models.items()):
        for kind, panel in zip(kinds, panels):
            distances = sorted(map(int, seeds[0]["right_of_cases"][kind]))
            means = [mean(accuracy(run, kind, one, one) or 0 for run in seeds) for one in distances]
            panel.plot(distances, means, **style(number))
        updates = [update for update, _ in seeds[0]["curve"]]
        losses = [mean(values) for values in zip(*([loss for _, loss in run["curve"]] for run in seeds))]
        panels[-1].plot(updates[: len(losses)], losses, label=name, **style(number))
    for kind, panel in zip(kinds, panels):
        panel.axhline(ceilings[kind], color="#555555", linestyle="--", linewidth=1)
        finish(panel, title=kind, ylim=(0, 1.04), xlabel="distance to the deciding sentence")
    finish(panels[-1], xlabel="updates", title="validation loss, bits per token")
    return figure


def name_of(suite: str) -> str:
    """Returns the file name of a suite's results."""
    return "comparison" if suite == "mechanisms" else f"variants_{suite}"


@progress_logged()
def main(argv: Sequence[str] | None = None) -> None:
    """Trains the models of a suite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="mechanisms", choices=sorted(path.stem for path in SUITES.glob("*.yaml")))
    parser.add_argument("--part", default="synthetic", choices=list(PARTS))
    parser.add_argument("--raw", type=Path, help="folder with the text, for --part text")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "comparison", help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="output folder")
    parser.add_argument("--models", nargs="+", help="default: all of the suite")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    args = parser.parse_args(argv)
    if args.part == "text" and not args.raw:
        parser.error("--part text: give the folder with the text with --raw")
    suite, corpus = Suite.read(args.suite), corpus_of(args.work / "corpus")
    models, dataset = suite.models(args.part), suite.dataset(args.part)
    stored = Store(args.results / f"{name_of(args.suite)}.json")
    ceilings = json.loads((corpus / "test.ceiling.json").read_text(encoding="utf-8"))["kinds"]
    stored.facts["ceilings"] = {kind: figures["accuracy"] for kind, figures in ceilings.items()}
    stored.add_call(args.raw)
    raw, output = args.raw if args.part == "text" else corpus, args.work / f"{args.suite}-{args.part}"
    for seed in args.seeds:
        for name in args.models or models:
            paragraphs = args.part == "synthetic" and models[name].arch.startswith("document_transformer")
            options = tuple(PARAGRAPHS) if paragraphs else ()
            recipe = Recipe(
                dataset, Options(output, raw, (name,), (seed,), Machine(cpu=True), train_options=options), models
            )
            if "similar" in models[name].options(dataset.training.updates):
                find_similar(recipe, output / "models" / f"{next(iter(models))}-{args.seeds[0]}")
            recipe.run()
            result = results_of(args.part, recipe, corpus, name, seed)
            stored.add(f"{args.part}-{name}-{seed}", result)
            report(stored, suite, args.suite, args.results)
            print(f"{args.part}: {name}, seed {seed}: BLEU {result['bleu']:.2f}", flush=True)


if __name__ == "__main__":
    main()

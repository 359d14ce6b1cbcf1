"""Every context mechanism on the same budget: which reaches how far back, and what some bring on real text.

    python -m benchmarks.experiments.comparison                      artificial documents: accuracy by distance
    python -m benchmarks.experiments.comparison text --raw FOLDER    English-German documents

Minutes a model on one core (OMP_NUM_THREADS=1). Run again, it goes on where it was; the report is written after every
model, with what there is of both parts.
"""

import argparse
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional

from benchmarks.experiments import comparison_report as report
from benchmarks.experiments.comparison_chains import chained
from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import RESULTS, ROOT, call, machine
from benchmarks.lib.progress import steps_told
from benchmarks.lib.store import Store
from docnmt_fairseq import cli
from docnmt_fairseq.corpus.files import partial_path
from docnmt_fairseq.evaluation.synth_report import build_report
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.processes import PLUGIN, alone_in, ending_on_signals, fairseq, run
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.training import BEST

CORPUS = shlex.split(
    "--nouns 9 --places 10 --verbs 6 --fillers 10 --names 4 --topics 6 --ambiguous-words 2 --words-per-sentence 4 4 "
    "--introductions 3 --max-distance 10 --sentences-per-document 22 26 --train-documents 4000 --valid-documents 20 "
    "--test-documents 150 --seed 1"
)
RECIPES = {
    "synthetic": Path(__file__).with_name("comparison_synthetic.yaml"),
    "text": named_recipes()["en_de_small"],
}
TEXT_MODELS = ("sentence", "memory", "conditional", "concatenation")
TEXT_TRAINING = {"size": "tiny", "updates": 1000, "batch_tokens": 3000, "validate_every": 200}
TEXT_PACE = ["--lr", "0.003", "--warmup-updates", "200", "--dropout", "0.1"]
# A formal or informal paragraph opens once; what reads documents is told which words are of which paragraph.
PARAGRAPHS = ("--paragraph-positions", "sinusoidal")
_PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
_LOSS = re.compile(r'"valid_nll_loss": "([\d.]+)"')


def dataset_of(part: str) -> DatasetConfig:
    """Returns the configuration of a part's data set, with the budget of this comparison."""
    dataset = read_dataset_config(RECIPES[part])
    if part == "synthetic":
        return dataset
    training = replace(dataset.training, **TEXT_TRAINING, options=[*dataset.training.options, *TEXT_PACE])
    return replace(dataset, prepare={**dataset.prepare, "vocab_size": 4000}, training=training)


def train_options(part: str, chosen: Model) -> List[str]:
    """Returns options of fairseq-train that a model gets in a part beside those of its recipe."""
    sees = chosen.arch.startswith("document_transformer")
    return list(PARAGRAPHS) if part == "synthetic" and sees else []


def trained(recipe: Recipe, name: str, seed: int) -> Dict[str, Any]:
    """Returns what every run has: model, seed, updates of its checkpoint, parameters, scores."""
    folder = recipe.output / "models" / f"{name}-{seed}"
    log = (folder / "train.log").read_text(encoding="utf-8")
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    losses = dict(validation_curve(folder / "train.log"))
    figures = {
        "model": name,
        "seed": seed,
        "updates": recipe.budget.updates,
        "best_update": min(losses, key=lambda update: losses[update]),
        "parameters": int(_PARAMETERS.findall(log)[-1].replace(",", "")),
    }
    return {**figures, **{key: scores[key] for key in ("bleu", "chrf", "bleu_signature", "chrf_signature")}}


def phenomena(recipe: Recipe, corpus: Path, name: str, seed: int) -> Dict[str, Dict[str, List[int]]]:
    """Returns {kind: {distance: [right, cases]}} of a model's translation of the artificial test documents."""
    log = recipe.output / "models" / f"{name}-{seed}" / "generate.log"
    found = build_report(corpus, "test", {"": log}).systems[""].accuracy.by_kind_and_distance
    return {
        kind: {str(distance): [figure.right, figure.cases] for distance, figure in figures.items()}
        for kind, figures in found.items()
    }


def validation_loss(recipe: Recipe, name: str, seed: int, context: Optional[str]) -> float:
    """Returns the nll in bits a token on the validation set.

    Args:
        recipe: of the model.
        name, seed: of the model.
        context: ``document`` or ``none``, as it is to see documents; None: as it is made to.
    """
    folder, chosen = recipe.output / "models" / f"{name}-{seed}", recipe.models[name]
    log = folder / f"valid_{context or 'own'}.log"
    if not log.exists():
        tokens = chosen.sentences * recipe.budget.batch_tokens
        words = [*fairseq("validate"), str(recipe.output / "data" / "data-bin"), "--user-dir", str(PLUGIN), "--task"]
        words += [chosen.task, "--path", str(folder / BEST), "--valid-subset", "valid", "--max-tokens", str(tokens)]
        words += ["--log-format", "json", *(["--context", context] if context else []), *Machine(cpu=True).options()]
        with open(partial_path(log), "w", encoding="utf-8") as stream:
            run(words, stream, partial_path(log))
        partial_path(log).rename(log)
    return float(_LOSS.findall(log.read_text(encoding="utf-8"))[-1])


def figures_of(part: str, recipe: Recipe, corpus: Path, name: str, seed: int) -> Dict[str, Any]:
    """Returns all figures of a trained model."""
    figures = {"part": part, **trained(recipe, name, seed)}
    if part == "synthetic":
        return {**figures, "right_of_cases": phenomena(recipe, corpus, name, seed)}
    sees = recipe.models[name].task == "document_translation"
    figures["nll"] = validation_loss(recipe, name, seed, "document" if sees else None)
    if sees:
        figures["nll_without_context"] = validation_loss(recipe, name, seed, "none")
    return figures


def corpus_of(folder: Path) -> Path:
    """Returns the folder of the artificial corpus; writes it first if need be."""
    if not (folder / "lexicon.json").exists() and cli.main(["synth", "--output", str(folder), *CORPUS]):
        raise SystemExit(1)
    return folder


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="synthetic", choices=tuple(RECIPES))
    parser.add_argument("--raw", type=Path, help="the folder with the text")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "comparison", help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--models", nargs="+", help="default: all of them, text: " + " ".join(TEXT_MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    args = parser.parse_args()
    if args.part == "text" and not args.raw:
        parser.error("text needs --raw FOLDER")

    dataset, corpus = dataset_of(args.part), corpus_of(args.work / "corpus")
    stored = Store(args.results / "comparison.json")
    ceilings = json.loads((corpus / "test.ceiling.json").read_text(encoding="utf-8"))["kinds"]
    stored.facts["ceilings"] = {kind: figures["accuracy"] for kind, figures in ceilings.items()}
    stored.facts["chained"] = chained(corpus, 3)
    stored.facts["machine"] = machine()
    stored.called(call(args.raw))
    default = tuple(report.REACH) if args.part == "synthetic" else TEXT_MODELS
    for seed in args.seeds:
        for name in args.models or default:
            raw = args.raw if args.part == "text" else corpus
            options = Options(
                args.work / args.part, raw, (name,), (seed,), Machine(cpu=True),
                train_options=tuple(train_options(args.part, model(name))),
            )  # fmt: skip
            recipe = Recipe(dataset, options)
            with alone_in(options.output), ending_on_signals():
                recipe.run()
                if args.part == "text":
                    manifest = json.loads((options.output / "data" / "manifest.json").read_text(encoding="utf-8"))
                    stored.facts["text_sentences"] = manifest["counts"]["train"]["sentences"]
                stored.add(f"{args.part}-{name}-{seed}", figures_of(args.part, recipe, corpus, name, seed))
            report.write(stored, args.results)
            print(report.line(stored.runs[f"{args.part}-{name}-{seed}"]), flush=True)


if __name__ == "__main__":
    main()

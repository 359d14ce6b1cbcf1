"""Variants of a model on the same budget, as a file in variants/ lists them.

    python -m benchmarks.experiments.variants layers                             artificial documents
    python -m benchmarks.experiments.variants layers --part text --raw FOLDER    English-German documents

Minutes a variant on one core (OMP_NUM_THREADS=1). Run again, it goes on where it was; the report is written after every
variant, with what there is of both parts.
"""

import argparse
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List

import yaml

from benchmarks.experiments import variants_report as report
from benchmarks.experiments.comparison import corpus_of, dataset_of, phenomena, trained
from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import RESULTS, ROOT, call, machine
from benchmarks.lib.progress import steps_told
from benchmarks.lib.store import Store
from docnmt_fairseq import cli
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.processes import alone_in, ending_on_signals
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.training import BEST

FOLDER = Path(__file__).parent / "variants"


@dataclass(frozen=True)
class Suite:
    """A question, and the models that answer it.

    Attributes:
        title: of the report.
        question: what is to be seen.
        variants: {name: {arch: architecture without its size, options: of fairseq-train, parts: default all}}.
        training: {part: what of its training differs from the comparison's}.
    """

    title: str
    question: str
    variants: Dict[str, Dict[str, Any]]
    training: Dict[str, Dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, name: str) -> "Suite":
        """Returns the suite of a file."""
        return cls(**yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))

    def models(self, part: str) -> Dict[str, Model]:
        """Returns the variants of a part."""
        return {
            name: Model("document_translation", entry["arch"], _always(entry.get("options", [])))
            for name, entry in self.variants.items()
            if part in entry.get("parts", (part,))
        }

    def dataset(self, part: str) -> DatasetConfig:
        """Returns the configuration of a part's data set, with the budget of this suite."""
        dataset = dataset_of(part)
        return replace(dataset, training=replace(dataset.training, **self.training.get(part, {})))


def _always(options: List[str]) -> Any:
    return lambda updates: list(map(str, options))


def find_similar(recipe: Recipe, model: Path) -> None:
    """Finds similar sentences in the data-bin, once: by CA-SEM vectors of the source embeddings of a trained model."""
    data, vectors = recipe.output / "data", recipe.output / "vectors.npz"
    if vectors.exists():
        return
    corpus = data / "subword" / f"train.{recipe.dataset.source_lang}"
    fit = ["embed", "fit", "--path", str(model / BEST), "--data", str(data), "--corpus", str(corpus)]
    made = vectors.with_name("vectors.partial.npz")
    for words in ([*fit, "--output", str(made)], ["embed", "neighbours", "--model", str(made), str(data)]):
        if cli.main(words):
            raise SystemExit(1)
    made.rename(vectors)


@steps_told()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=sorted(path.stem for path in FOLDER.glob("*.yaml")))
    parser.add_argument("--part", default="synthetic", choices=("synthetic", "text"))
    parser.add_argument("--raw", type=Path, help="the folder with the text")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "comparison", help="folder for data and models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--variants", nargs="+", help="default: all of them")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    args = parser.parse_args()
    if args.part == "text" and not args.raw:
        parser.error("--part text needs --raw FOLDER")

    suite = Suite.read(args.suite)
    models, dataset = suite.models(args.part), suite.dataset(args.part)
    corpus = corpus_of(args.work / "corpus")
    stored = Store(args.results / f"variants_{args.suite}.json")
    ceilings = json.loads((corpus / "test.ceiling.json").read_text(encoding="utf-8"))["kinds"]
    stored.facts["ceilings"] = {kind: figures["accuracy"] for kind, figures in ceilings.items()}
    stored.facts["machine"] = machine()
    stored.called(call(args.raw))
    for seed in args.seeds:
        for name in args.variants or models:
            raw = args.raw if args.part == "text" else corpus
            output = args.work / f"{args.suite}-{args.part}"
            recipe = Recipe(dataset, Options(output, raw, (name,), (seed,), Machine(cpu=True)), models)
            with alone_in(output), ending_on_signals():
                if "similar" in models[name].options(dataset.training.updates):
                    find_similar(recipe, output / "models" / f"{next(iter(models))}-{args.seeds[0]}")
                recipe.run()
                curve = validation_curve(recipe.output / "models" / f"{name}-{seed}" / "train.log")
                run = {"part": args.part, **trained(recipe, name, seed), "curve": curve}
                if args.part == "synthetic":
                    run["right_of_cases"] = phenomena(recipe, corpus, name, seed)
                stored.add(f"{args.part}-{name}-{seed}", run)
            report.write(stored, suite.title, suite.question, list(suite.variants), args.results, args.suite)
            print(report.line(run), flush=True)


if __name__ == "__main__":
    main()

"""One recipe: the steps in their order, each done once."""

import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from docnmt_fairseq.corpus.config import AND, config_of
from docnmt_fairseq.corpus.files import atomic_write_bytes, read_lines
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.readers import all_options
from docnmt_fairseq.corpus.steps import Steps, sha256
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.postprocess import read_translation
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.recipes import fixtures
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.fetch import Source
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.scoring import scores_of, scores_of_unchanged
from docnmt_fairseq.recipes.select import native_documents, write_first, write_held_out
from docnmt_fairseq.recipes.table import Seeds, scores_table
from docnmt_fairseq.recipes.training import Budget, Machine, train, translate

STEPS = ("get", "prepare", "train", "translate", "table")
SMOKE_DOCUMENTS = {"train": 24, "valid": 3, "test": 3}
SMOKE_HELD_OUT = 10  # sentences
SMOKE_PIECES = 24  # subwords beside the characters
UNCHANGED = "translation as it is"  # the row that automatic post-editing is to be better than

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """What a run of a recipe is asked for; see ``docnmt recipe --help``."""

    output: Path
    raw: Optional[Path] = None
    models: Tuple[str, ...] = ()
    seeds: Tuple[int, ...] = (1,)
    machine: Machine = Machine()
    size: Optional[str] = None
    updates: Optional[int] = None
    train_options: Tuple[str, ...] = ()
    until: str = STEPS[-1]
    smoke: bool = False
    workers: int = 1
    words: bool = False


class Recipe:
    """A data set, and where its files, models and scores go.

    Args:
        dataset: its configuration.
        options: what to do.
        known: more models that ``options`` may name.

    Raises:
        InputError: models that do not exist; an output that belongs to another recipe.
    """

    def __init__(self, dataset: DatasetConfig, options: Options, known: Optional[Mapping[str, Model]] = None):
        if options.words and not dataset.post_edits_of:
            raise InputError("--words: only for recipes of automatic post-editing")
        self.dataset, self.options, known = dataset, options, known or {}
        names = options.models or dataset.models
        self.models: Dict[str, Model] = {name: known.get(name) or model(name) for name in names}
        self.steps = Steps(options.output.absolute(), summary=options.output.absolute() / "table.md")
        self.output = self.steps.folder
        training = dataset.training
        self.budget = Budget(
            options.size or training.size,
            options.updates or training.updates,
            training.batch_tokens,
            training.validate_every,
            [*training.options, *options.train_options],
        )
        if options.smoke:
            size, updates = options.size or "tiny", options.updates or 40
            self.budget = replace(
                self.budget, size=size, updates=updates, batch_tokens=600, validate_every=10, smoke=True
            )

    def run(self) -> Optional[str]:
        """Does all steps, up to the last one asked for; returns the table if that is it.

        Raises:
            InputError: something is missing or wrong, or a command failed.
        """
        self._claim()
        done = STEPS.index(self.options.until)
        paths = self.get()
        if done < 1:
            return None
        manifest = self.prepare(paths)
        if done < 2:
            return None
        for name in self.models:
            for seed in self.options.seeds:
                self.train(name, seed, manifest)
                if done >= 3:
                    self.translate(name, seed, manifest)
        return self.table(manifest) if done >= 4 else None

    def _claim(self) -> None:
        """Notes whose output this is."""
        path, own = self.output / "recipe.json", {"recipe": self.dataset.title, "smoke": self.options.smoke}
        own.update({"words": True} if self.options.words else {})
        if path.exists() and json.loads(path.read_text(encoding="utf-8")) != own:
            raise InputError(f"--output {self.output}: belongs to another recipe, or another kind of run; give another")
        atomic_write_bytes(path, (json.dumps(own, ensure_ascii=False) + "\n").encode())

    def get(self) -> Dict[str, Path]:
        """Returns where the files of the data set are."""
        raw = self.options.raw
        if self.options.smoke and raw is None:
            raw = self.output / "fixtures"
            self.steps.run(
                "fixtures", {"title": self.dataset.title}, [raw], partial(fixtures.write_raw, self.dataset, raw)
            )
        source = Source(self.dataset, self.output, raw)
        return {name: source.get(name) for name in self.dataset.files}

    def prepare(self, paths: Dict[str, Path]) -> Dict[str, Any]:
        """Returns the manifest of the prepared data, in ``data``."""
        dataset, splits = self.dataset, self._native(paths)
        settings = dict(dataset.prepare, on_empty="drop")
        if not self.options.words:
            settings["edits_of"] = dataset.post_edits_of
        if dataset.hold_out or self.options.smoke:
            splits = self._selected(paths)
            settings = {name: value for name, value in settings.items() if name not in all_options()}  # read by now
            if self.options.smoke and settings.get("subwords") != "none":
                settings["vocab_size"] = self._few_subwords(splits, settings)
        train_split, valid, test = (splits[name] for name in ("train", "valid", "test"))
        settings.update(
            source_lang=dataset.source_lang, target_lang=dataset.target_lang, output=self.output / "data",
            train=train_split[1], valid=[valid[1]], test=[test[1]], train_format=train_split[0],
            valid_format=valid[0], test_format=test[0], workers=self.options.workers,
        )  # fmt: skip
        return prepare(config_of(settings))

    def _native(self, paths: Dict[str, Path]) -> Dict[str, Tuple[str, List[str]]]:
        """Returns format and arguments of ``docnmt prepare`` for each split that has files."""
        splits = {}
        for name, split in self.dataset.splits.items():
            arguments: List[str] = []
            for corpus in split.corpora:
                arguments += [*([AND] if arguments else []), *(str(paths[file]) for file in corpus)]
            splits[name] = split.format, arguments
        return splits

    def _selected(self, paths: Dict[str, Path]) -> Dict[str, Tuple[str, List[str]]]:
        """Writes all sides of the splits as delimited text in ``selected``; returns what ``docnmt prepare`` takes."""
        dataset, smoke, folder = self.dataset, self.options.smoke, self.output / "selected"
        languages = {"source_lang": dataset.source_lang, "target_lang": dataset.target_lang}
        config = config_of({**dataset.prepare, **languages, "output": self.output, "on_empty": "drop"})
        sides = [side.name for side in config.sides]
        files = {name: [folder / f"{name}.{side}" for side in sides] for name in ("train", "valid", "test")}
        for name, split in dataset.splits.items():
            native = [[paths[file] for file in corpus] for corpus in split.corpora]
            documents = native_documents(split, native, config.reading)
            inputs: Dict[str, Any] = {"files": [sha256(path) for corpus in native for path in corpus], "smoke": smoke}
            if name == "train" and dataset.hold_out:
                cut = replace(dataset.hold_out, sentences=SMOKE_HELD_OUT) if smoke else dataset.hold_out
                written = [path for several in files.values() for path in several]
                inputs["hold_out"] = [cut.splits, cut.sentences, cut.seed]
                self.steps.run("selected", inputs, written, partial(write_held_out, documents, cut, files))
            else:
                most = SMOKE_DOCUMENTS[name] if smoke else None
                action = partial(write_first, documents, most, files[name])
                self.steps.run(f"selected/{name}", {**inputs, "most": most}, files[name], action)
        return {name: ("delimited", [str(path) for path in several]) for name, several in files.items()}

    def _few_subwords(self, splits: Dict[str, Tuple[str, List[str]]], settings: Dict[str, Any]) -> int:
        """Returns a vocabulary size that suits a few documents."""
        lines = [[line for line in read_lines(path) if not is_mark(line)] for path in splits["train"][1]]
        signs = [set("".join(side)) for side in lines]
        if settings.get("joint", True):
            return len(signs[0] | signs[1]) + SMOKE_PIECES
        return max(map(len, signs)) + SMOKE_PIECES

    def _folder(self, name: str, seed: int) -> Path:
        return self.output / "models" / f"{name}-{seed}"

    def _signature(self, manifest: Dict[str, Any]) -> str:
        """Returns what stands for the prepared data in the records of trainings."""
        files = sorted((self.output / "data" / "models").glob("*"))
        return json.dumps([manifest["counts"], {path.name: sha256(path) for path in files}], sort_keys=True)

    def train(self, name: str, seed: int, manifest: Dict[str, Any]) -> None:
        """Trains a model."""
        data, folder = self.output / "data" / "data-bin", self._folder(name, seed)
        logger.info(f"training {name}, seed {seed}: {folder / 'train.log'}")
        machine, chosen = self.options.machine, self.models[name]
        train(data, folder, chosen, self.budget, seed, machine, self._signature(manifest))

    def translate(self, name: str, seed: int, manifest: Dict[str, Any]) -> None:
        """Translates the test set with a model, and scores it: ``generate.log``, ``test.txt``, ``scores.json``."""
        data, folder, chosen = self.output / "data", self._folder(name, seed), self.models[name]
        options, log = manifest["options"], folder / "generate.log"
        subwords = options["subwords"] != "none" and not options["edits_of"]
        trained = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        tokens, cpu = chosen.sentences * self.budget.batch_tokens, self.options.machine.cpu
        action = partial(translate, data / "data-bin", folder, log, chosen, tokens, subwords, cpu)
        self.steps.run(f"translate/{name}-{seed}", {"model": trained}, [log], action)
        written = [folder / "test.txt", folder / "scores.json"]
        self.steps.run(f"score/{name}-{seed}", {"log": sha256(log)}, written, partial(self._score, log, *written))

    def _score(self, log: Path, text: Path, scores: Path) -> None:
        found = read_translation(self.output / "data", "test", log)
        values = scores_of(found, post_editing=self.dataset.post_edits_of is not None)
        atomic_write_bytes(text, "".join(f"{line}\n" for line in found.text).encode())
        atomic_write_bytes(scores, (json.dumps(values, indent=1) + "\n").encode())

    def table(self, manifest: Dict[str, Any]) -> str:
        """Returns the table, which is written to ``table.md`` last."""
        scores: Dict[str, Seeds] = {}
        if self.dataset.post_edits_of:
            scores[UNCHANGED] = {None: scores_of_unchanged(self.output / "data", self.dataset.post_edits_of)}
        for name in self.models:
            paths = {seed: self._folder(name, seed) / "scores.json" for seed in self.options.seeds}
            scores[name] = {seed: json.loads(path.read_text(encoding="utf-8")) for seed, path in paths.items()}
        counts = {split: values["sentences"] for split, values in manifest["counts"].items()}
        text = scores_table(self.dataset, scores, counts, self.options.smoke)
        atomic_write_bytes(self.output / "table.md", (text + "\n").encode())
        return text

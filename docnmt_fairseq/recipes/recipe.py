"""Recipe: fetches and prepares a data set, trains models, translates, probes and scores, each step once."""

import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.prepared import data_bins
from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import folder_lock, read_json, sha256, write_bytes, write_json
from docnmt_fairseq.recipes import synthetic_data
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.downloads import Source
from docnmt_fairseq.recipes.models import Model, model, models
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.results import ResultFiles, Results, Scores, unedited_scores
from docnmt_fairseq.recipes.splits import prepare_splits
from docnmt_fairseq.recipes.table import Seeds, scores_table
from docnmt_fairseq.recipes.training import BEST, Budget, train, training_options

STEPS = ("fetch", "prepare", "start", "train", "translate", "probe", "table")
SMOKE_UPDATES = 40
UNEDITED = "translation as it is"  # row of automatic post-editing for the machine translation
START = "start"  # folder of the model that initialises all others


@dataclass(frozen=True)
class Options:
    """Options of ``docnmt recipe``."""

    output: Path
    raw: Optional[Path] = None
    models: Tuple[str, ...] = ()
    seeds: Tuple[int, ...] = (1,)
    machine: Machine = Machine()
    size: Optional[str] = None
    updates: Optional[int] = None
    train_options: Tuple[str, ...] = ()
    stop_after: str = STEPS[-1]
    smoke: bool = False
    workers: int = 1
    words: bool = False

    @property
    def changes(self) -> List[str]:
        """Options that make the models differ from those of the recipe."""
        given = {"--size": self.size, "--updates": self.updates}
        sizes = [f"{flag} {value}" for flag, value in given.items() if value is not None]
        return [*sizes, *(["--words"] if self.words else []), *self.train_options]


class Recipe:
    """Data set, and output folder of its files, models and scores.

    Args:
        dataset: configuration.
        options: what to run.
        known: further models that ``options`` may name.
    """

    def __init__(self, dataset: DatasetConfig, options: Options, known: Optional[Mapping[str, Model]] = None):
        known, training, smoke = known or {}, dataset.training, options.smoke
        self.synthetic = smoke and options.raw is None
        self.dataset = synthetic_data.as_delimited(dataset) if self.synthetic else dataset
        self.options, self.start = options, training.start
        names = options.models or dataset.models
        self.models: Dict[str, Model] = {name: known.get(name) or model(name) for name in names}
        self.steps = StepCache(options.output.absolute(), summary=options.output.absolute() / "table.md")
        self.output = self.steps.folder
        self.budget = Budget(
            options.size or ("tiny" if smoke else training.size),
            options.updates or (SMOKE_UPDATES if smoke else training.updates),
            600 if smoke else training.batch_tokens,
            10 if smoke else training.validate_every,
            [*training.options, *options.train_options],
            smoke,
            training.common,
        )
        tasks = {one.task for one in (*self.models.values(), *models().values())}
        if unknown := {*training.task_options} - tasks:
            raise InputError(f"training: task_options: {', '.join(unknown)}: unknown task; known: {', '.join(tasks)}")
        trained = [(chosen, self._budget_of(chosen)) for chosen in self.models.values()]
        if self.start is not None:
            self.start_model = known.get(self.start.model) or model(self.start.model, "training: start: model:")
            trained.append((self.start_model, self._budget_of(self.start_model, self.start.options)))
        for chosen, budget in trained:
            options.machine.batch_options(self._tokens(chosen), training_options(chosen, budget, seed=1))

    def run(self) -> Optional[str]:
        """Runs all steps up to ``stop_after``; returns the table if that is the last one."""
        options, last = self.options, STEPS.index(self.options.stop_after)

        def finished(step: str) -> bool:
            return last <= STEPS.index(step)

        with folder_lock(self.output):
            self._claim_output()
            paths = self.fetch()
            if finished("fetch"):
                return None
            manifest = prepare_splits(self.dataset, self.steps, paths, options.smoke, options.words, options.workers)
            results = Results(self.dataset, self.steps, manifest, paths, options.machine, options.smoke)
            if finished("prepare"):
                return None
            data = self._data_fingerprint(manifest)
            start = self._train_start(data)
            if finished("start"):
                return None
            for folder, chosen, seed in self._trainings():
                self._train(folder, chosen, self._budget_of(chosen), seed, data, start)
                if not finished("train"):
                    results.translate(folder, chosen, self._tokens(chosen))
            if finished("translate"):
                return None
            for folder, chosen, _ in self._trainings():  # after all trainings: probes keep models in this process
                if chosen.sees_context:
                    results.probe(folder, chosen, self._tokens(chosen))
            return None if finished("probe") else self._write_table(results, manifest)

    def fetch(self) -> Dict[str, Path]:
        """Returns the paths of all files of the data set by name: of --raw, downloaded, or synthetic."""
        raw = self.options.raw
        if self.synthetic:
            raw = self.output / "fixtures"
            inputs = {"dataset": [self.dataset.source_lang, self.dataset.target_lang, *self.dataset.files]}
            self.steps.run("fixtures", inputs, [raw], partial(synthetic_data.write_raw, self.dataset, raw))
        source = Source(self.dataset, self.steps, raw)
        return {name: source.get(name) for name in self.dataset.files}

    def _trainings(self) -> Iterator[Tuple[Path, Model, int]]:
        for name, chosen in self.models.items():
            for seed in self.options.seeds:
                yield self.folder(name, seed), chosen, seed

    def folder(self, name: str, seed: int) -> Path:
        """Folder of a trained model."""
        return self.output / "models" / f"{name}-{seed}"

    def _claim_output(self) -> None:
        """Writes to which recipe the output belongs, or compares it."""
        options = self.options
        path, own = self.output / "recipe.json", [self.dataset.title, options.smoke, options.words]
        if read_json(path) not in (None, own):
            raise InputError(f"--output {self.output}: belongs to another recipe, or another kind of run; change it")
        write_json(path, own)

    def _data_fingerprint(self, manifest: Dict[str, Any]) -> str:
        """Identifies the prepared data in the records of trainings; independent of further test sets."""
        further = list(self.dataset.test_sets.values())[1:]
        counts = {split: values for split, values in manifest["counts"].items() if split not in further}
        data = self.output / "data"
        features = [data / f"{split}.{name}.npy" for split in ("train", "valid") for name in self.dataset.features]
        files = {path.name: sha256(path) for path in [*sorted((data / "models").glob("*")), *features]}
        return json.dumps([counts, files, self.dataset.prepare.get("shards", 1)], sort_keys=True)

    def _tokens(self, chosen: Model) -> int:
        """Tokens per batch, so that batches of all models have the same number of samples."""
        return chosen.sentences * self.budget.batch_tokens

    def _budget_of(self, chosen: Model, further: Sequence[str] = ()) -> Budget:
        """Returns the budget of a model with the options of its task; options of the command line take precedence."""
        training = self.dataset.training
        of_task = training.task_options.get(chosen.task, [])
        default_size = chosen.sized and self.options.size is None and not self.options.smoke
        options = [*training.options, *of_task, *further, *self.options.train_options]
        return replace(self.budget, size="" if default_size else self.budget.size, options=options)

    def _train_start(self, data: str) -> Optional[Path]:
        """Trains the model that initialises all others, if any, and returns its checkpoint."""
        if self.start is None:
            return None
        budget, folder = self._budget_of(self.start_model, self.start.options), self.output / "models" / START
        if not self.options.smoke:
            budget = replace(budget, updates=self.start.updates)
        self._train(folder, self.start_model, budget, self.start.seed, data)
        return folder / BEST

    def _train(
        self, folder: Path, chosen: Model, budget: Budget, seed: int, data: str, start: Optional[Path] = None
    ) -> None:
        bins = ":".join(map(str, data_bins(self.output / "data", int(self.dataset.prepare.get("shards", 1)))))
        train(bins, folder, chosen, budget, seed, self.options.machine, data, start)

    def _write_table(self, results: Results, manifest: Dict[str, Any]) -> str:
        dataset, seeds = self.dataset, self.options.seeds
        baseline = self.start.model if self.start and self.start.model in self.models else None
        for name in self.models:
            for seed in seeds if baseline not in (None, name) else ():
                results.compare(self.folder(name, seed), self.folder(str(baseline), seed))
        scores: Dict[str, Dict[str, Seeds]] = {}
        for test_set, split in dataset.test_sets.items():
            of_set = scores[test_set] = {}
            if dataset.post_edits_of:
                of_set[UNEDITED] = {None: unedited_scores(self.output / "data", split, dataset.post_edits_of)}
            for name in self.models:
                tested = baseline not in (None, name)
                of_set[name] = {seed: self.scores(name, seed, test_set, tested) for seed in seeds}
        names = {split: name for name, split in dataset.test_sets.items()}
        counts = {names.get(split, split): values["sentences"] for split, values in manifest["counts"].items()}
        text = scores_table(dataset, scores, counts, self.options.smoke, baseline, self.options.changes)
        write_bytes(self.output / "table.md", (text + "\n").encode())
        return text

    def scores(self, name: str, seed: int, test_set: str, significance: bool = False) -> Scores:
        """Returns scores, probes and perhaps significance of a model on a test set."""
        files = ResultFiles(self.folder(name, seed), test_set)
        return files.scores(self.dataset, significance, probes=self.models[name].sees_context)

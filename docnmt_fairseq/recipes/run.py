"""One recipe: the steps in their order, each done once."""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.corpus.shards import data_bins
from docnmt_fairseq.corpus.steps import Steps, sha256
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model, model, models
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.results import Results, read_scores
from docnmt_fairseq.recipes.run_probes import Probing, read_probes
from docnmt_fairseq.recipes.scoring import Scores, scores_of_unchanged
from docnmt_fairseq.recipes.splits import Splits
from docnmt_fairseq.recipes.table import Seeds, scores_table
from docnmt_fairseq.recipes.training import BEST, Budget, check_size, train, training_options

STEPS = ("get", "prepare", "start", "train", "translate", "probe", "table")
UNCHANGED = "translation as it is"  # the row that automatic post-editing is to be better than
START = "start"  # its folder

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

    @property
    def changes(self) -> List[str]:
        """The options by which models are no longer the recipe's."""
        given = {"--size": self.size, "--updates": self.updates}
        sizes = [f"{flag} {value}" for flag, value in given.items() if value is not None]
        return [*sizes, *(["--words"] if self.words else []), *self.train_options]


class Recipe:
    """A data set, and where its files, models and scores go.

    Args:
        dataset: its configuration.
        options: what to do.
        known: more models that ``options`` may name.

    Raises:
        InputError: models, tasks or sizes that do not exist; an output that belongs to another recipe.
    """

    def __init__(self, dataset: DatasetConfig, options: Options, known: Optional[Mapping[str, Model]] = None):
        if options.words and not dataset.post_edits_of:
            raise InputError("--words: only for recipes of automatic post-editing")
        self.dataset, self.options, known = dataset, options, known or {}
        names = options.models or dataset.models
        self.models: Dict[str, Model] = {name: known.get(name) or model(name) for name in names}
        self.start, self.first = dataset.training.start, None
        if self.start is not None:
            self.first = known.get(self.start.model) or model(self.start.model, "training: start: model:")
        _check_tasks(dataset, [*self.models.values(), *models().values()])
        self.steps = Steps(options.output.absolute(), summary=options.output.absolute() / "table.md")
        self.output = self.steps.folder
        self.splits = Splits(dataset, self.steps, options.smoke, options.words, options.workers)
        training = dataset.training
        self.budget = Budget(
            options.size or training.size,
            options.updates or training.updates,
            training.batch_tokens,
            training.validate_every,
            [*training.options, *options.train_options],
            common=training.common,
        )
        if options.smoke:
            size, updates = options.size or "tiny", options.updates or 40
            self.budget = replace(
                self.budget, size=size, updates=updates, batch_tokens=600, validate_every=10, smoke=True
            )
        self._check_trainings()

    def _check_trainings(self) -> None:
        """Refuses sizes that an architecture has not, and machines that cannot share every model's steps."""
        trained = [(chosen, self._budget_of(chosen)) for chosen in self.models.values()]
        if self.start is not None and self.first is not None:
            trained.append((self.first, self._budget_of(self.first, self.start.options)))
        for chosen, budget in trained:
            check_size(chosen, budget.size, "training: size:" if self.options.size is None else "--size")
            self.options.machine.share(self._tokens(chosen), training_options(chosen, budget, seed=1))

    def run(self) -> Optional[str]:
        """Does all steps, up to the last one asked for; returns the table if that is it.

        Raises:
            InputError: something is missing or wrong, or a command failed.
        """
        self._claim()
        paths = self.splits.get(self.options.raw)
        if not self._reaches("prepare"):
            return None
        manifest = self.splits.prepare(paths)
        results = Results(self.dataset, self.steps, manifest, paths, self.options.smoke)
        results.check()
        if not self._reaches("start"):
            return None
        data = self._data_signature(manifest)
        start, machine = self._train_start(data), self.options.machine
        if not self._reaches("train"):
            return None
        for name, chosen in self.models.items():
            for seed in self.options.seeds:
                self._train(self._folder(name, seed), chosen, self._budget_of(chosen), seed, data, start)
                if self._reaches("translate"):
                    results.translate(self._folder(name, seed), chosen, self._tokens(chosen), machine)
        if self._reaches("probe"):  # after all trainings: these processes may need the memory that models take of this
            self._probe(Probing(results, machine.cpu))
        return self._table(results, manifest) if self._reaches("table") else None

    @property
    def shards(self) -> int:
        """The data-bins that the training text is dealt out to."""
        return int(self.dataset.prepare.get("shards", 1))

    def _reaches(self, step: str) -> bool:
        return STEPS.index(step) <= STEPS.index(self.options.until)

    def _claim(self) -> None:
        """Notes whose output this is."""
        path, own = self.output / "recipe.json", {"recipe": self.dataset.title, "smoke": self.options.smoke}
        own.update({"words": True} if self.options.words else {})
        if path.exists() and json.loads(path.read_text(encoding="utf-8")) != own:
            raise InputError(f"--output {self.output}: belongs to another recipe, or another kind of run; give another")
        atomic_write_bytes(path, (json.dumps(own, ensure_ascii=False) + "\n").encode())

    def _folder(self, name: str, seed: int) -> Path:
        return self.output / "models" / f"{name}-{seed}"

    def _data_signature(self, manifest: Dict[str, Any]) -> str:
        """What stands for the prepared data in the records of trainings; further test sets may come and go."""
        further = list(self.dataset.test_sets.values())[1:]
        counts = {split: values for split, values in manifest["counts"].items() if split not in further}
        data, dealt = self.output / "data", [self.shards] if self.shards > 1 else []
        features = [data / f"{split}.{name}.npy" for split in ("train", "valid") for name in self.dataset.features]
        files = [*sorted((data / "models").glob("*")), *features]
        return json.dumps([counts, {path.name: sha256(path) for path in files}, *dealt], sort_keys=True)

    def _tokens(self, chosen: Model) -> int:
        """Of a batch: as many samples for every model."""
        return chosen.sentences * self.budget.batch_tokens

    def _budget_of(self, chosen: Model, more: Sequence[str] = ()) -> Budget:
        """What a model gets, with the options of its task; those of the command line come last and win."""
        training = self.dataset.training
        own = training.task_options.get(chosen.task, [])
        asked = self.options.size is not None or self.options.smoke
        size = "" if chosen.sized and not asked else self.budget.size
        return replace(self.budget, size=size, options=[*training.options, *own, *more, *self.options.train_options])

    def _train_start(self, data: str) -> Optional[Path]:
        """The checkpoint that all models begin as, trained before them; None if each begins by itself."""
        if self.start is None or self.first is None:
            return None
        budget = self._budget_of(self.first, self.start.options)
        if not self.options.smoke:
            budget = replace(budget, updates=self.start.updates)
        folder = self.output / "models" / START
        self._train(folder, self.first, budget, self.start.seed, data)
        return folder / BEST

    def _train(
        self, folder: Path, chosen: Model, budget: Budget, seed: int, data: str, start: Optional[Path] = None
    ) -> None:
        logger.info(f"training {folder.name}: {folder / 'train.log'}")
        bins = ":".join(map(str, data_bins(self.output / "data", self.shards)))
        train(bins, folder, chosen, budget, seed, self.options.machine, data, start)

    def _probe(self, probing: Probing) -> None:
        """Asks the models that see context."""
        for name, chosen in self.models.items():
            for seed in self.options.seeds if chosen.sees_context else ():
                probing.probe(self._folder(name, seed), chosen, self._tokens(chosen))

    def _table(self, results: Results, manifest: Dict[str, Any]) -> str:
        """The table, which is written to ``table.md`` last."""
        dataset, seeds = self.dataset, self.options.seeds
        baseline = self.start.model if self.start and self.start.model in self.models else None
        for name in self.models if baseline else ():
            for seed in seeds if name != baseline else ():
                results.compare(self._folder(name, seed), self._folder(str(baseline), seed))
        scores: Dict[str, Dict[str, Seeds]] = {}
        for test_set, split in dataset.test_sets.items():
            of_set = scores[test_set] = {}
            if dataset.post_edits_of:
                of_set[UNCHANGED] = {None: scores_of_unchanged(self.output / "data", split, dataset.post_edits_of)}
            for name in self.models:
                tested = baseline is not None and name != baseline
                of_set[name] = {seed: self._scores(name, seed, test_set, tested) for seed in seeds}
        names = {split: name for name, split in dataset.test_sets.items()}
        counts = {names.get(split, split): values["sentences"] for split, values in manifest["counts"].items()}
        text = scores_table(dataset, scores, counts, self.options.smoke, baseline, self.options.changes)
        atomic_write_bytes(self.output / "table.md", (text + "\n").encode())
        return text

    def _scores(self, name: str, seed: int, test_set: str, tested: bool) -> Scores:
        """All that was found out about a model on a test set."""
        files = ResultFiles(self._folder(name, seed), test_set)
        probed = read_probes(files, self.dataset.probes) if self.models[name].sees_context else {}
        return {**read_scores(files, tested), **probed}


def _check_tasks(dataset: DatasetConfig, known: List[Model]) -> None:
    """Refuses options for tasks that no model has."""
    tasks = list(dict.fromkeys(one.task for one in known))
    unknown = [task for task in dataset.training.task_options if task not in tasks]
    if unknown:
        raise InputError(f"training: task_options: {', '.join(unknown)}: no such task; there are {', '.join(tasks)}")

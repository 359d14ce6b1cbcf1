"""Reads the configuration of a data set from YAML, and refuses what it cannot mean."""

import re
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Type, TypeVar

from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.corpus.readers import make_reader
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.recipes.dataset import (
    NEEDED,
    DatasetConfig,
    Download,
    HoldOut,
    Published,
    SplitConfig,
    Start,
    Training,
)
from docnmt_fairseq.recipes.metrics import further_metrics
from docnmt_fairseq.recipes.probes import Probes
from docnmt_fairseq.recipes.value_types import check_types
from docnmt_fairseq.translate.view import DocumentView

T = TypeVar("T")

# Options of docnmt prepare that a recipe has from its other keys, or that are the same in all.
OF_RECIPES = ("source_lang", "target_lang", "output", "train", "valid", "test", "train_format", "valid_format",
              "test_format", "format", "on_empty", "workers")  # fmt: skip


def named_recipes() -> Dict[str, Path]:
    """The data sets that come with the package, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "configs").glob("*.yaml"))}


def recipe_path(name: str) -> Path:
    """The file of a recipe that comes with the package, or the file of that name.

    Raises:
        InputError: there is neither.
    """
    known = named_recipes()
    if name not in known and not Path(name).is_file():
        raise InputError(f"{name}: no such recipe, and no such file; there are {', '.join(known)}")
    return known.get(name, Path(name))


def read_dataset_config(path: Path) -> DatasetConfig:
    """The configuration in a file.

    Raises:
        InputError: it cannot be read, or says something that nobody knows; names the key.
    """
    values = _read(path)
    parts: Dict[str, Callable[[Any, str], object]] = {
        "training": _training,
        "hold_out": partial(_typed, HoldOut),
        "published": partial(_typed, Published),
        "scores": further_metrics,
        "probes": partial(_made, Probes),
        "view": _view,
    }
    for name, made in parts.items():
        if name in values:
            values[name] = made(values[name], f"{path}: {name}")
    downloads, splits = values.get("downloads") or [], values.get("splits") or {}
    if isinstance(downloads, list):
        values["downloads"] = [_typed(Download, one, f"{path}: downloads") for one in downloads]
    if isinstance(splits, Mapping):
        values["splits"] = {name: _typed(SplitConfig, one, f"{path}: splits: {name}") for name, one in splits.items()}
    dataset = _typed(DatasetConfig, values, str(path))
    _check_splits(path, dataset)
    _check_prepare(path, dataset)
    _check_features(path, dataset)
    dataset.scores.check(dataset.test_sets, f"{path}: scores")
    if "probes" in values:
        dataset.probes.check(dataset.test_sets, dataset.post_edits_of is not None, f"{path}: probes")
    return dataset


def _read(path: Path) -> Dict[str, Any]:
    """The keys of a file, and those that only the recipe has that it is ``like``.

    Raises:
        InputError: it cannot be read; no recipe that comes with the package is called what it is like.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path}: no recipe: {error}") from error
    values = dict(values) if isinstance(values, Mapping) else {}
    if "like" not in values:
        return values
    name = values.pop("like")
    base = named_recipes().get(str(name))
    if base is None:
        raise InputError(f"{path}: like: {name}: no such recipe; there are {', '.join(named_recipes())}")
    return {**_read(base), **values}


def _training(values: Any, where: str) -> Training:
    """How models are trained; all options must be text, as they stand on a command line."""
    if isinstance(values, Mapping) and values.get("start") is not None:
        values = {**values, "start": _made(Start, values["start"], f"{where}: start")}
    training = _made(Training, values, where)
    if not isinstance(training.task_options, Mapping):
        raise InputError(f"{where}: task_options: expected options by task, got {training.task_options!r}")
    lists = {f"task_options: {task}": options for task, options in training.task_options.items()}
    if training.start is not None:
        lists["start: options"] = training.start.options
    for name, options in {"options": training.options, **lists}.items():
        if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
            raise InputError(f'{where}: {name}: expected a list of options, numbers in quotes ("0.1"); got {options!r}')
    check_types(training, where)
    counts = {name: getattr(training, name) for name in ("updates", "batch_tokens", "validate_every")}
    if training.start is not None:
        check_types(training.start, f"{where}: start")
        counts["start: updates"] = training.start.updates
    for name, count in counts.items():
        if count < 1:
            raise InputError(f"{where}: {name}: {count} is not a number from 1 on")
    return training


def _view(values: Any, where: str) -> DocumentView:
    """How models see documents in translation; the context itself is taken from them by probes alone."""
    view = _made(DocumentView, values, where)
    if view.context is not None:
        raise InputError(f"{where}: context: not here; ask for it by probes: contexts")
    for name, value in view.given.items():
        if type(value) is not int or value < 0:
            raise InputError(f"{where}: {name}: {value!r} is not a number from 0 on")
    return view


def _check_splits(path: Path, dataset: DatasetConfig) -> None:
    """Splits that are missing, come twice, or are called what ``docnmt prepare`` calls others."""
    names = dataset.split_names
    if not {*NEEDED} <= {*names} or len({*names}) < len(names):
        raise InputError(f"{path}: splits: train, valid and test are needed, each once; others are further test sets")
    for name in (name for name in names if name not in NEEDED):
        if not re.fullmatch(r"[A-Za-z][\w-]*", str(name)) or re.fullmatch(r"(train|valid|test)\d*", name):
            raise InputError(f"{path}: splits: {name}: give the test set another name, of letters, such as unseen")
    for name, split in dataset.splits.items():
        where, language = f"{path}: splits: {name}: balance_register", split.balance_register
        if language is not None and (name != "train" or dataset.hold_out is not None):
            raise InputError(f"{where}: is of train alone, and not beside hold_out")
        if language is not None and language not in RULES:
            raise InputError(f"{where}: no rules for {language!r}; there are {', '.join(RULES.names())}")
        if split.documents is not None:
            _check_documents(f"{path}: splits: {name}: documents", split.documents, dataset.scores.files_of_lines(name))


def _check_documents(where: str, documents: List[int], counting: Mapping[str, str]) -> None:
    """A part of a split's documents that is none, or whose lines are counted from another place."""
    if len(documents) != 2 or not 0 <= documents[0] < documents[1]:
        raise InputError(f"{where}: expected [the first, from 0, the one after the last]; got {documents!r}")
    if counting:
        raise InputError(
            f"{where}: {', '.join(counting.values())} counts lines of the whole file; cut the files instead"
        )


def _check_prepare(path: Path, dataset: DatasetConfig) -> None:
    """Options of ``docnmt prepare`` that there are not, or that would do nothing; values that the formats refuse."""
    own = [name for name in dataset.prepare if name in OF_RECIPES]
    if own:
        raise InputError(f"{path}: prepare: {', '.join(own)}: the recipe sees to that; leave it out")
    try:
        config = config_of({"source_lang": "", "target_lang": "", "output": "", **dataset.prepare})
        check_types(config, "prepare")
        reading = config.reading
        for split in dataset.splits.values():
            make_reader(split.format, reading)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _check_features(path: Path, dataset: DatasetConfig) -> None:
    """Features that are not of every split, each one file."""
    for name, files in dataset.features.items():
        if {*files} != {*dataset.split_names}:
            raise InputError(f"{path}: features: {name}: give a file for each of {', '.join(dataset.split_names)}")


def _typed(kind: Type[T], values: Any, where: str) -> T:
    """The dataclass of these values, each of its type."""
    made = _made(kind, values, where)
    check_types(made, where)
    return made


def _made(kind: Type[T], values: Any, where: str) -> T:
    """The dataclass of these values; unknown and missing keys are errors."""
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: expected keys and values, got {values!r}")
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(map(str, {*values} - known))
    if unknown:
        raise InputError(f"{where}: unknown {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    try:
        return kind(**values)
    except TypeError as error:
        raise InputError(f"{where}: {error}") from error

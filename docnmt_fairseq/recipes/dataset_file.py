"""Reads the configuration of a data set from YAML."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Type, TypeVar, cast

from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.corpus.readers import make_reader
from docnmt_fairseq.errors import InputError, first_line, refuse
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.recipes.dataset import CONTEXTS, REQUIRED_SPLITS, DatasetConfig
from docnmt_fairseq.translate.view import DocumentView

T = TypeVar("T")

# Options of docnmt prepare that the recipe sets.
RECIPE_OPTIONS = {"source_lang", "target_lang", "output", "train", "valid", "test", "train_format", "valid_format",
                  "test_format", "format", "on_empty", "workers"}  # fmt: skip


def named_recipes() -> Dict[str, Path]:
    """Files of the data sets that come with the package, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "configs").glob("*.yaml"))}


def recipe_path(name: str) -> Path:
    """Returns the file of a recipe of the package, or the file of that name.

    Raises:
        InputError: neither exists.
    """
    known = named_recipes()
    if name not in known and not Path(name).is_file():
        raise InputError(f"{name}: neither a recipe nor a file; recipes: {', '.join(known)}")
    return known.get(name, Path(name))


def read_dataset_config(path: Path) -> DatasetConfig:
    """Reads the configuration of a data set.

    Raises:
        InputError: the file cannot be read, or a key is unknown, missing or invalid; names the key.
    """
    values = _read(path)
    scores = values.get("scores")
    if isinstance(scores, Mapping):
        options = {name: value for name, value in scores.items() if name != "metrics"}
        values["scores"] = {"metrics": scores.get("metrics", []), "options": options}
    dataset = typed(DatasetConfig, values, path)
    refuse(f"{path}: {problem}" for problem in _problems(dataset))
    return dataset


def typed(kind: Type[T], values: Mapping[str, Any], path: Path) -> T:
    """Converts values of a YAML file to a dataclass, nested ones included.

    Raises:
        InputError: a key is unknown, missing or of another type.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return cast(T, OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), dict(values))))
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {error.full_key}: {first_line(error)}") from error


def _read(path: Path) -> Dict[str, Any]:
    """Keys of a file, and those of the recipe that it is ``like``."""
    import yaml

    try:
        values = dict(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path}: not a recipe: {error}") from error
    return {**_read(recipe_path(str(values.pop("like")))), **values} if "like" in values else values


def _problems(dataset: DatasetConfig) -> Iterator[str]:
    names = dataset.split_names
    if not {*REQUIRED_SPLITS} <= {*names} or len({*names}) < len(names):
        yield f"splits: {', '.join(REQUIRED_SPLITS)} are required, each once; others are further test sets"
        return
    for name in (name for name in names if name not in REQUIRED_SPLITS):
        reserved = re.fullmatch(r"(train|valid|test)\d*", name) or name in CONTEXTS
        if reserved or not re.fullmatch(r"[A-Za-z][\w-]*", name):
            yield f"splits: {name}: give the test set another name, of letters, such as unseen"
    for name, split in dataset.splits.items():
        where, language = f"splits: {name}", split.balance_register
        if language is not None and (name != "train" or dataset.hold_out is not None):
            yield f"{where}: balance_register: only for train, and not with hold_out"
        if language is not None and language not in RULES:
            yield f"{where}: balance_register: no rules for {language!r}; known: {', '.join(RULES.names())}"
        if split.documents is not None:
            if len(split.documents) != 2 or not 0 <= split.documents[0] < split.documents[1]:
                yield f"{where}: documents: expected [first, end], counted from 0; got {split.documents}"
            if files := dataset.scores.line_files(name):
                yield f"{where}: documents: {', '.join(files.values())} counts lines of the whole file; cut the files"
    for name, by_split in dataset.features.items():
        if {*by_split} != {*names}:
            yield f"features: {name}: give a file for each of {', '.join(names)}"
    if own := RECIPE_OPTIONS & {*dataset.prepare}:
        yield f"prepare: {', '.join(sorted(own))}: set by the recipe; leave it out"
    else:
        yield from _preparation_problems(dataset)
    yield from (f"scores: {problem}" for problem in dataset.scores.problems(dataset.test_sets))
    probes = dataset.probes
    if unknown := [context for context in probes.contexts if context not in CONTEXTS]:
        yield f"probes: contexts: {', '.join(unknown)}: choose from {', '.join(CONTEXTS)}"
    if dataset.post_edits_of and (probes.contexts or probes.cxmi_sentences is not None):
        yield "probes: not with post_edits_of"
    allowed = {one.name for one in fields(DocumentView)} - {"context"}
    if unknown := [name for name in dataset.view if name not in allowed]:
        yield f"view: {', '.join(unknown)}: unknown; known: {', '.join(sorted(allowed))}"


def _preparation_problems(dataset: DatasetConfig) -> Iterator[str]:
    try:
        reading = config_of({"source_lang": "", "target_lang": "", "output": "", **dataset.prepare}).reading
        for split in dataset.splits.values():
            make_reader(split.format, reading)
    except InputError as error:
        yield str(error)

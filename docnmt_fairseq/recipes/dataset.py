"""The configuration of one data set, from YAML: where it is, its splits, its preparation, what was published on it."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar

from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.corpus.readers import make_reader
from docnmt_fairseq.errors import InputError

T = TypeVar("T")
DEFAULT_MODELS = ("sentence", "concatenation", "conditional", "tree")


@dataclass(frozen=True)
class Download:
    """A file that is fetched, or unpacked from another; ``holds`` are files that are unpacked from it.

    Attributes:
        name: what it is called on disk.
        urls: tried in this order; none if another download holds it.
        md5: of its content, None where it is not known.
        holds: base names of its members.
    """

    name: str
    urls: List[str] = field(default_factory=list)
    md5: Optional[str] = None
    holds: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class SplitConfig:
    """One split: a format of ``docnmt prepare``, and the files of each corpus as that format takes them."""

    format: str
    corpora: List[List[str]]


@dataclass(frozen=True)
class HoldOut:
    """Splits that are cut from the training set: each a run of so many consecutive sentences, at a random place."""

    splits: List[str]
    sentences: int
    seed: int = 1


@dataclass(frozen=True)
class Training:
    """How models are trained on this data set.

    Attributes:
        size: of the architectures.
        updates: of every model.
        batch_tokens: source or target tokens that an update sees.
        validate_every: updates between validations; the checkpoint with the lowest loss translates.
        options: of fairseq-train, beside those of all recipes.
    """

    size: str = "base"
    updates: int = 100_000
    batch_tokens: int = 6520
    validate_every: int = 1000
    options: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Published:
    """What a paper reports: sentences of the splits; BLEU and HTER over tokens by model."""

    source: str
    sentences: Dict[str, int] = field(default_factory=dict)
    bleu: Dict[str, float] = field(default_factory=dict)
    hter: Dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetConfig:
    """Everything that a recipe has to know about a data set.

    Attributes:
        prepare: options of ``docnmt prepare`` by name, see :func:`~docnmt_fairseq.corpus.config.config_of`.
        models: that are trained if nobody says which.
        post_edits_of: for automatic post-editing: the side with machine translations, which are scored, too.
    """

    title: str
    source_lang: str
    target_lang: str
    page: str
    splits: Dict[str, SplitConfig]
    prepare: Dict[str, Any]
    training: Training
    downloads: List[Download] = field(default_factory=list)
    hold_out: Optional[HoldOut] = None
    published: Optional[Published] = None
    models: List[str] = field(default_factory=lambda: list(DEFAULT_MODELS))
    post_edits_of: Optional[str] = None

    @property
    def files(self) -> List[str]:
        """All files that the splits are read from."""
        return [file for split in self.splits.values() for corpus in split.corpora for file in corpus]


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
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"{path}: no recipe: {error}") from error
    values = dict(values) if isinstance(values, Mapping) else {}
    parts = {"training": Training, "hold_out": HoldOut, "published": Published}
    for name, kind in parts.items():
        if values.get(name) is not None:
            values[name] = _made(kind, values[name], f"{path}: {name}")
    values["downloads"] = [_made(Download, one, f"{path}: downloads") for one in values.get("downloads") or []]
    splits = values.get("splits") or {}
    values["splits"] = {name: _made(SplitConfig, one, f"{path}: splits: {name}") for name, one in splits.items()}
    dataset = _made(DatasetConfig, values, str(path))
    held = dataset.hold_out.splits if dataset.hold_out else []
    if {*dataset.splits, *held} != {"train", "valid", "test"} or {*dataset.splits} & {*held}:
        raise InputError(f"{path}: splits: train, valid and test are needed, each once")
    _check_prepare(path, dataset)
    return dataset


def _check_prepare(path: Path, dataset: DatasetConfig) -> None:
    """Options of ``docnmt prepare`` that there are not, and values that the formats refuse."""
    try:
        reading = config_of({"source_lang": "", "target_lang": "", "output": "", **dataset.prepare}).reading
        for split in dataset.splits.values():
            make_reader(split.format, reading)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _made(kind: Type[T], values: Any, where: str) -> T:
    """Returns the dataclass of these values; unknown and missing keys are errors."""
    if not isinstance(values, Mapping):
        raise InputError(f"{where}: expected keys and values, got {values!r}")
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(f"{where}: unknown {', '.join(map(str, unknown))}; there are {', '.join(sorted(known))}")
    try:
        return kind(**values)
    except TypeError as error:
        raise InputError(f"{where}: {error}") from error

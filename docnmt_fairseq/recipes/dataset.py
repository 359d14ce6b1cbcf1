"""Configuration of a data set: its files, splits, preparation, training, scores and published figures.

The dataclasses are the schema of the YAML files in ``configs/``.
"""

from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Type, TypeVar, cast

from docnmt_fairseq.corpus.config import config_of
from docnmt_fairseq.corpus.readers import READERS
from docnmt_fairseq.errors import InputError, first_line, refuse
from docnmt_fairseq.evaluation.metrics import METRICS, MetricOptions
from docnmt_fairseq.evaluation.metrics.pronouns import FORMS
from docnmt_fairseq.translate.view import DocumentView

T = TypeVar("T")

DEFAULT_MODELS = ("sentence", "concatenation", "conditional", "tree")
TEST = "test"  # the first test set
REQUIRED_SPLITS = ("train", "valid", TEST)
SHUFFLED, NO_CONTEXT = "shuffled", "none"
CONTEXTS = (SHUFFLED, NO_CONTEXT)  # of ``docnmt translate --context``, in addition to the true one


@dataclass
class Download:
    """File to download, or to extract from another one.

    Attributes:
        name: file name on disk.
        urls: tried in order; empty if another download holds the file.
        md5: checksum, if known.
        holds: base names of the archive members to extract.
    """

    name: str
    urls: List[str] = field(default_factory=list)
    md5: Optional[str] = None
    holds: List[str] = field(default_factory=list)


@dataclass
class LeaveOut:
    """Documents of a split that are left out.

    Attributes:
        listed: file with the name of one such document per line.
        names: table with a row per document of the split, in order, whose last column is its name.
    """

    listed: str
    names: str


@dataclass
class SplitConfig:
    """Split: a format of ``docnmt prepare`` and the files of each corpus as that format takes them.

    Attributes:
        balance_register: language whose register rules balance the training set, by repeating documents of the rarer
            register.
        balance_pronouns: English third-person pronouns that balance the training set in the same way, such as
            ``[he, she]``.
        documents: first document, from 0, and end (exclusive), if the files hold several splits.
        leave_out: documents that are not in the split, although the files have them.
        references: further references of a delimited test set, files with the same lines as its own.
    """

    format: str
    corpora: List[List[str]]
    balance_register: Optional[str] = None
    balance_pronouns: List[str] = field(default_factory=list)
    documents: Optional[List[int]] = None
    leave_out: Optional[LeaveOut] = None
    references: List[str] = field(default_factory=list)

    @property
    def selected(self) -> bool:
        """Whether the split differs from the documents of its files."""
        return bool(self.balance_register or self.balance_pronouns or self.documents or self.leave_out)

    @property
    def files(self) -> List[str]:
        """Names of all files of the split."""
        lists = [] if self.leave_out is None else [self.leave_out.listed, self.leave_out.names]
        return [*(file for corpus in self.corpora for file in corpus), *lists, *self.references]


@dataclass
class HoldOut:
    """Splits cut from the training set: a run of ``sentences`` consecutive sentences each, at a random position."""

    splits: List[str]
    sentences: int
    seed: int = 1


@dataclass
class Start:
    """Sentence-level model that is trained first and initialises every model of the recipe.

    Attributes:
        model: name of a sentence-level model.
        updates: number of updates.
        options: options of fairseq-train that override those of the recipe.
        seed: seed of this model, independent of the seeds of the others.
    """

    model: str
    updates: int
    options: List[str] = field(default_factory=list)
    seed: int = 1


@dataclass
class Training:
    """Training of the models of a data set.

    Attributes:
        size: size preset of the architectures; models with published sizes keep those.
        updates: updates of every model, in addition to those of the start.
        batch_tokens: source or target tokens per update.
        validate_every: updates between validations; the checkpoint with the lowest loss translates.
        common: use the optimiser and loss that all recipes share; otherwise ``options`` give them.
        options: options of fairseq-train.
        task_options: further options by the task that has them.
        start: model that initialises all others, if any.
    """

    size: str = "base"
    updates: int = 100_000
    batch_tokens: int = 6520
    validate_every: int = 1000
    common: bool = True
    options: List[str] = field(default_factory=list)
    task_options: Dict[str, List[str]] = field(default_factory=dict)
    start: Optional[Start] = None


@dataclass
class Published:
    """Published figures: sentences per split; BLEU and HTER over tokens per model."""

    source: str
    sentences: Dict[str, int] = field(default_factory=dict)
    bleu: Dict[str, float] = field(default_factory=dict)
    hter: Dict[str, float] = field(default_factory=dict)


@dataclass
class Probes:
    """Tests whether a model uses its context; none by default.

    Attributes:
        contexts: false contexts of ``CONTEXTS`` that the test sets are also translated with.
        cxmi_sentences: sample size for CXMI per test set, 0 for all sentences; None: not measured.
    """

    contexts: List[str] = field(default_factory=list)
    cxmi_sentences: Optional[int] = None


@dataclass
class ExtraMetrics:
    """Metrics of ``docnmt score`` in addition to BLEU and chrF.

    Attributes:
        metrics: names in ``METRICS``.
        options: options of these metrics by name, one value or a value per test set; file names are those of the data
            set's files.
    """

    metrics: List[str] = field(default_factory=list)
    options: Dict[str, Any] = field(default_factory=dict)

    @property
    def declared(self) -> Dict[str, "Field[Any]"]:
        """Declarations of all options of the metrics, by name."""
        return {option.name: option for name in self.metrics for option in fields(METRICS[name].Options)}

    @property
    def files(self) -> List[str]:
        """Names of all files that the metrics read."""
        given = [value for name, value in self.options.items() if _is_file(self.declared[name])]
        return [file for value in given for file in (value.values() if isinstance(value, Mapping) else [value])]

    def value(self, option: str, test_set: str) -> Any:
        """Returns the value of an option for a test set; None if it is not given."""
        value = self.options.get(option)
        return value.get(test_set) if isinstance(value, Mapping) else value

    def line_files(self, test_set: str) -> Dict[str, str]:
        """Returns the files whose rows refer to line numbers of a test set, by option."""
        by_line = [name for name, option in self.declared.items() if option.metadata.get("by_line")]
        return {name: value for name in by_line if (value := self.value(name, test_set)) is not None}

    def options_of(self, metric: str, test_set: str, paths: Mapping[str, Path]) -> MetricOptions:
        """Returns the options of a metric on a test set; ``paths``: paths of files by name."""
        given = {}
        for option in fields(METRICS[metric].Options):
            value = self.value(option.name, test_set)
            if value is not None:
                given[option.name] = str(paths.get(value, value)) if _is_file(option) else value
        return METRICS[metric].Options(**given)


def _is_file(option: "Field[Any]") -> bool:
    return option.metadata.get("metavar") == "FILE"


@dataclass
class DatasetConfig:
    """Configuration of a data set.

    Attributes:
        prepare: options of ``docnmt prepare`` by name, see :func:`~docnmt_fairseq.corpus.config.config_of`.
        scores: metrics in addition to BLEU and chrF.
        probes: tests whether models use their context.
        view: document view in translation where it differs from training; for models that see context.
        models: models to train by default.
        post_edits_of: automatic post-editing: side with the machine translations, which are scored as well.
        features: files with features of every sentence, by name and split.
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
    scores: ExtraMetrics = field(default_factory=ExtraMetrics)
    probes: Probes = field(default_factory=Probes)
    view: Dict[str, int] = field(default_factory=dict)
    models: List[str] = field(default_factory=lambda: list(DEFAULT_MODELS))
    post_edits_of: Optional[str] = None
    features: Dict[str, Dict[str, str]] = field(default_factory=dict)

    @property
    def files(self) -> List[str]:
        """Names of all files that splits and metrics are read from."""
        of_splits = [file for split in self.splits.values() for file in split.files]
        of_features = [file for by_split in self.features.values() for file in by_split.values()]
        return [*of_splits, *self.scores.files, *of_features]

    def references(self, test_set: str) -> List[str]:
        """Names of the files with further references of a test set."""
        return self.splits[test_set].references if test_set in self.splits else []

    @property
    def split_names(self) -> List[str]:
        """Names of all splits, those cut from the training set last."""
        return [*self.splits, *(self.hold_out.splits if self.hold_out else [])]

    @property
    def test_sets(self) -> Dict[str, str]:
        """Test sets, ``test`` first, and the name of each in the output of ``docnmt prepare``: test, test1, …."""
        names = [TEST, *(name for name in self.split_names if name not in REQUIRED_SPLITS)]
        return {name: f"{TEST}{number or ''}" for number, name in enumerate(names)}


# --- Files ---


def named_recipes() -> Dict[str, Path]:
    """Files of the data sets that come with the package, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "configs").glob("*.yaml"))}


def recipe_path(name: str) -> Path:
    """Returns the file of a recipe of the package, or the file of that name."""
    known = named_recipes()
    if name not in known and not Path(name).is_file():
        raise InputError(f"{name}: neither a recipe nor a file; recipes: {', '.join(known)}")
    return known.get(name, Path(name))


def read_dataset_config(path: Path) -> DatasetConfig:
    """Reads the configuration of a data set.

    Raises:
        InputError: the file cannot be read, or a key is unknown, missing or wrong.
    """
    import yaml
    from omegaconf.errors import OmegaConfBaseException

    try:
        return _checked(_read(path))
    except (OmegaConfBaseException, yaml.YAMLError, TypeError, ValueError) as error:
        key = getattr(error, "full_key", None)  # of OmegaConf
        problem = first_line(error) if key is not None else error
        raise InputError(f"{path}: {f'{key}: ' if key else ''}{problem}") from error


def _checked(values: Dict[str, Any]) -> DatasetConfig:
    if isinstance(scores := values.get("scores"), Mapping):
        options = {name: value for name, value in scores.items() if name != "metrics"}
        values["scores"] = {"metrics": scores.get("metrics", []), "options": options}
    dataset = typed(DatasetConfig, values)
    refuse(_problems(dataset))
    _check_options(dataset)
    return dataset


def typed(kind: Type[T], values: Mapping[str, Any]) -> T:
    """Converts values of a YAML file to a dataclass; unknown, missing and wrong keys are errors."""
    from omegaconf import OmegaConf

    return cast(T, OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), dict(values))))


def _read(path: Path) -> Dict[str, Any]:
    """Keys of a file, and those of the recipe that it is ``like``."""
    import yaml

    with open(path, encoding="utf-8") as stream:
        values = dict(yaml.safe_load(stream))
    return {**_read(recipe_path(str(values.pop("like")))), **values} if "like" in values else values


def _problems(dataset: DatasetConfig) -> Iterator[str]:
    names, scores = dataset.split_names, dataset.scores
    if not {*REQUIRED_SPLITS} <= {*names} or len({*names}) < len(names):
        yield f"splits: {', '.join(REQUIRED_SPLITS)} are required, each once; others are further test sets"
        return
    for name, split in dataset.splits.items():
        for key in ("balance_register", "balance_pronouns"):
            if getattr(split, key) and (name != "train" or dataset.hold_out):
                yield f"splits: {name}: {key}: only for train, and not with hold_out"
        if unknown := [one for one in split.balance_pronouns if one not in FORMS]:
            yield f"splits: {name}: balance_pronouns: {', '.join(unknown)}: choose from {', '.join(FORMS)}"
        if split.references and (
            split.format != "delimited" or len(split.corpora) > 1 or name not in dataset.test_sets
        ):
            yield f"splits: {name}: references: only for test sets of one delimited corpus"
    for option, value in scores.options.items():
        if isinstance(value, Mapping) and not {*value} <= {*dataset.test_sets}:
            yield f"scores: {option}: unknown test sets in {', '.join(value)}; known: {', '.join(dataset.test_sets)}"
    if unknown := [context for context in dataset.probes.contexts if context not in CONTEXTS]:
        yield f"probes: contexts: {', '.join(unknown)}: choose from {', '.join(CONTEXTS)}"


def _check_options(dataset: DatasetConfig) -> None:
    """Creates what checks its options, so that errors appear before the first training."""
    DocumentView(**dataset.view)  # type: ignore[arg-type]
    reading = config_of({"source_lang": "", "target_lang": "", "output": "", **dataset.prepare}).reading
    for split in dataset.splits.values():
        READERS[split.format](reading)
    for metric in dataset.scores.metrics:
        for test_set in dataset.test_sets:
            dataset.scores.options_of(metric, test_set, {})

"""The configuration of one data set: where it is, its splits, its preparation, what was published on it."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from docnmt_fairseq.recipes.metrics import FurtherMetrics
from docnmt_fairseq.recipes.probes import Probes
from docnmt_fairseq.translate.view import DocumentView

DEFAULT_MODELS = ("sentence", "concatenation", "conditional", "tree")
TEST = "test"  # the first test set
NEEDED = ("train", "valid", TEST)


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
    """One split: a format of ``docnmt prepare``, and the files of each corpus as that format takes them.

    Attributes:
        balance_register: of a training set, the language by whose rules documents of the rarer register are repeated.
        documents: the first that is taken, from 0, and the one after the last; files may hold several splits.
    """

    format: str
    corpora: List[List[str]]
    balance_register: Optional[str] = None
    documents: Optional[List[int]] = None


@dataclass(frozen=True)
class HoldOut:
    """Splits that are cut from the training set: each a run of so many consecutive sentences, at a random place."""

    splits: List[str]
    sentences: int
    seed: int = 1


@dataclass(frozen=True)
class Start:
    """A model that is trained first; all models of the recipe, itself as well, then begin with its weights.

    Attributes:
        model: its name; a sentence-level model, which any other can begin as.
        updates: that it gets.
        options: of fairseq-train, instead of those that the models get or beside them.
        seed: of it, whichever the models have.
    """

    model: str
    updates: int
    options: List[str] = field(default_factory=list)
    seed: int = 1


@dataclass(frozen=True)
class Training:
    """How models are trained on this data set.

    Attributes:
        size: of the architectures, but for models that have published sizes of their own.
        updates: of every model, beside those of the start.
        batch_tokens: source or target tokens that an update sees.
        validate_every: updates between validations; the checkpoint with the lowest loss translates.
        common: whether optimiser and loss are those of all recipes, the Transformer's; else ``options`` has them.
        options: of fairseq-train, beside those of all recipes.
        task_options: more of them, by the task that has them.
        start: what models begin as; None: each by itself.
    """

    size: str = "base"
    updates: int = 100_000
    batch_tokens: int = 6520
    validate_every: int = 1000
    common: bool = True
    options: List[str] = field(default_factory=list)
    task_options: Dict[str, List[str]] = field(default_factory=dict)
    start: Optional[Start] = None


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
        scores: beside BLEU and chrF.
        probes: whether it comes from context.
        view: of documents in translation, where it is to differ from training; of the models that see context.
        models: that are trained if nobody says which.
        post_edits_of: for automatic post-editing: the side with machine translations, which are scored, too.
        features: files with features of every sentence by name and split, which go beside the data-bin.
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
    scores: FurtherMetrics = field(default_factory=FurtherMetrics)
    probes: Probes = field(default_factory=Probes)
    view: DocumentView = DocumentView()
    models: List[str] = field(default_factory=lambda: list(DEFAULT_MODELS))
    post_edits_of: Optional[str] = None
    features: Dict[str, Dict[str, str]] = field(default_factory=dict)

    @property
    def files(self) -> List[str]:
        """All files that the splits are read from, and those that metrics read."""
        of_splits = [file for split in self.splits.values() for corpus in split.corpora for file in corpus]
        of_features = [file for of_splits in self.features.values() for file in of_splits.values()]
        return [*of_splits, *self.scores.files, *of_features]

    @property
    def split_names(self) -> List[str]:
        """The names of all splits, those cut from the training set last."""
        return [*self.splits, *(self.hold_out.splits if self.hold_out else [])]

    @property
    def test_sets(self) -> Dict[str, str]:
        """What ``docnmt prepare`` calls each test set, by its name: ``test`` and all but ``train`` and ``valid``."""
        names = [TEST, *(name for name in self.split_names if name not in NEEDED)]
        return {name: f"{TEST}{number or ''}" for number, name in enumerate(names)}

"""The contract of metrics, and the registry that ``docnmt score`` asks for them.

A metric is one class in one file of this folder, registered under its name on the command line; importing the folder
imports its files, so they import libraries only where they use them. A metric scores segments: on the level of
sentences these are sentences, on that of documents ("d-BLEU", ...) whole documents, and it need not know which.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import ClassVar, Dict, List, Optional, Sequence, Type

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.options import CheckedOptions
from docnmt_fairseq.registry import Registry

Statistics = List[List[float]]  # a row for each segment


@dataclass(frozen=True)
class MetricOptions(CheckedOptions):
    """What a metric can be told: fields made by :func:`docnmt_fairseq.options.option`, each a flag of its name.

    Metrics may share an option: that of one name means the same to all.

    Raises:
        InputError: a value that is not allowed.
    """


class Metric(ABC):
    """Contract: ``cls(test_set, options)``; scores translations of one test set.

    A score is made of sums: each segment gives a row of numbers, and the score of many segments is that of the sum of
    their rows. So significance tests draw segments or documents without asking the metric again. Not every figure is
    made of sums: types within segments are, types over a whole corpus are not.

    Class attributes:
        title: what its scores are called in tables ("d-" is put before it on the level of documents).
        help: in one line, what it is.
        Options: what it can be told.
        asked_by: the option that asks for it where it is given; otherwise ``--metrics`` does.
        lower_is_better: whether it counts errors.
        judges: whether worse translations score worse; other figures, such as a length, only describe.
        decimals: of scores in tables.
        joins_documents: whether it can take a whole document as one segment; else sentences are scored on any level.
        needs_source: whether it reads the source, too.

    Args:
        test_set: one or several references by document, so that there is context, too; source if it was given.
        options: of the class's ``Options``.

    Raises:
        InputError: what it needs is missing: a source, a package, a model; or an option has no meaning.
    """

    title: str
    help: ClassVar[str]
    Options: ClassVar[Type[MetricOptions]] = MetricOptions
    asked_by: ClassVar[Optional[str]] = None
    lower_is_better: ClassVar[bool] = False
    judges: ClassVar[bool] = True
    decimals: ClassVar[int] = 2
    joins_documents: ClassVar[bool] = True
    needs_source: ClassVar[bool] = False

    def __init__(self, test_set: References, options: MetricOptions):
        self.test_set, self.options = test_set, options
        if self.needs_source and test_set.source is None:
            raise InputError(f"{self.title} reads the source, too: give --source")

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """The statistics of every translation, [segments, sums]; all at once, as references may be costly to read.

        Args:
            translations: each with the documents and sentences of the test set.
        """
        references = list(zip(*map(segments, self.test_set.streams)))
        return [list(map(self.segment_statistics, segments(one), references)) for one in translations]

    def segment_statistics(self, translation: str, references: Sequence[str]) -> List[float]:
        """The statistics of one segment, [sums]; for metrics that leave :meth:`statistics` as it is."""
        raise NotImplementedError

    @abstractmethod
    def score(self, sums: Sequence[float]) -> float:
        """The score of any segments, from the sums [sums] of their statistics."""

    def corpus_score(self, statistics: Statistics) -> float:
        """The score of all segments."""
        return self.score([sum(column) for column in zip(*statistics)])

    def signature(self, **details: object) -> str:
        """What makes a score reproducible, in the form of sacreBLEU's signatures.

        Args:
            details: what is to be said beside, by name, such as the seed of a test.
        """
        if self.test_set.level == "document":  # such scores compare with no others
            details["segments"] = "documents"
        return self.signed(details)

    def signed(self, details: Dict[str, object]) -> str:
        """The signature of the metric and its options with these details."""
        about = {"nrefs": len(self.test_set.streams), **asdict(self.options), **details, "docnmt_fairseq": __version__}
        return "|".join(f"{name}:{value}" for name, value in about.items())


METRICS: Registry[Metric] = Registry("metric")


def percent(part: float, whole: float) -> float:
    """A share in percent; 0 of nothing, which a resample may have."""
    return 100 * part / whole if whole else 0.0

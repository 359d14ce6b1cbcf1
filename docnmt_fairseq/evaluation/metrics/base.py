"""Base class and registry of the metrics of ``docnmt score``.

A metric is a class in a file of this folder, registered under its command line name. All files are imported with the
package, so they import their libraries only when they are used.
"""

from dataclasses import asdict, dataclass
from typing import ClassVar, Dict, List, Optional, Sequence, Tuple, Type

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.options import CheckedOptions, flag_of
from docnmt_fairseq.registry import Registry

Statistics = List[List[float]]  # [segments, sums]


@dataclass(frozen=True)
class MetricOptions(CheckedOptions):
    """Options of a metric: fields made by :func:`docnmt_fairseq.options.option`, each a command line flag.

    Metrics may share an option of the same name and meaning.
    """


class Metric:
    """Scores translations of one test set.

    Every segment, a sentence or a document, has a row of sufficient statistics, and the score of a set of segments is a
    function of the sum of their rows. Significance tests resample segments or documents from these rows. Subclasses
    define :meth:`segment_statistics` or :meth:`statistics`, and :meth:`score` unless it is a percentage.

    Class attributes:
        title: name in tables.
        help: description in one line.
        Options: dataclass of the options.
        enabled_by: required option, which selects the metric in addition to ``--metrics``.
        requires: required option that does not select it.
        lower_is_better: True for error rates.
        measures_quality: False for descriptive figures such as a length.
        decimals: of scores in tables.
        scores_documents: True if documents may be segments; otherwise sentences are scored at every level.
        needs_source: True if the source is required.
        parts: names of the scores of :meth:`part_scores`.

    Args:
        test_set: references, with the source if it was given.
        options: instance of ``Options``.

    Raises:
        InputError: a required option, a package or a model is missing, or options are invalid.
    """

    title: str
    help: ClassVar[str]
    Options: ClassVar[Type[MetricOptions]] = MetricOptions
    enabled_by: ClassVar[Optional[str]] = None
    requires: ClassVar[Optional[str]] = None
    lower_is_better: ClassVar[bool] = False
    measures_quality: ClassVar[bool] = True
    decimals: ClassVar[int] = 2
    scores_documents: ClassVar[bool] = True
    needs_source: ClassVar[bool] = False
    parts: ClassVar[Tuple[str, ...]] = ()

    def __init__(self, test_set: References, options: MetricOptions):
        self.test_set, self.options = test_set, options
        required = filter(None, (self.enabled_by, self.requires))
        missing = [flag_of(name) for name in required if not getattr(options, name)]
        missing += ["--source"] if self.needs_source and test_set.source is None else []
        if missing:
            raise InputError(f"{self.title}: requires {' '.join(missing)}")

    def statistics(self, translation: Stream) -> Statistics:
        """Statistics of a translation with the documents and sentences of the test set, [segments, sums]."""
        return list(map(self.segment_statistics, segments(translation), zip(*map(segments, self.test_set.streams))))

    def system_statistics(self, name: str, translation: Stream) -> Statistics:
        """:meth:`statistics` of a named system, for metrics that know more of it than its translation."""
        return self.statistics(translation)

    def segment_statistics(self, translation: str, references: Sequence[str]) -> List[float]:
        """Statistics of one segment, [sums]; called by the default :meth:`statistics`."""
        raise NotImplementedError

    def score(self, sums: Sequence[float]) -> float:
        """Score of a set of segments from the sum of their statistics; by default the first in percent of the second.

        An empty resample scores 0.
        """
        return 100 * sums[0] / sums[1] if sums[1] else 0.0

    def part_scores(self, sums: Sequence[float]) -> Dict[str, float]:
        """Scores of the same statistics by category, such as the recall of each pronoun; without empty categories."""
        return {}

    def corpus_score(self, statistics: Statistics) -> float:
        """Score of all segments."""
        return self.score(column_sums(statistics))

    @property
    def name(self) -> str:
        """Title with the level: "d-BLEU" scores documents."""
        return f"d-{self.title}" if self.test_set.level == "document" else self.title

    def signature(self, **details: object) -> str:
        """Reproducibility signature in the format of sacreBLEU.

        Args:
            details: additional fields, such as the seed of a test.
        """
        if self.test_set.level == "document":  # not comparable with sentence-level scores
            details["segments"] = "documents"
        return self.format_signature(details)

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature of the metric and its options, followed by the details."""
        about = {"nrefs": len(self.test_set.streams), **asdict(self.options), **details, "docnmt_fairseq": __version__}
        return "|".join(f"{name}:{value}" for name, value in about.items())


def column_sums(statistics: Statistics) -> List[float]:
    """Sum of the rows, [sums]."""
    return [sum(column) for column in zip(*statistics)]


METRICS: Registry[Metric] = Registry("metric")

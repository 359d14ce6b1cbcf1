"""sacreBLEU's metrics as metrics of this package: a thin adapter that every one of them shares."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

from docnmt_fairseq.evaluation.metrics.base import Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream, segments

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as LibraryMetric


LOWERCASE = "without case"


class SacrebleuMetric(Metric):
    """Contract: ``make`` says which of sacreBLEU's metrics it is, and how it is set up.

    sacreBLEU's ``corpus_score`` is two steps, statistics of segments and the score of their sum; the steps have no
    public names, and are called here only.
    """

    def __init__(self, test_set: References, options: MetricOptions):
        super().__init__(test_set, options)
        self.library = self.make(None)
        self.library.num_refs = len(test_set.streams)  # what reading the references would find

    @abstractmethod
    def make(self, references: Optional[Sequence[Sequence[str]]]) -> "LibraryMetric":
        """One of sacreBLEU's metrics, which remembers the segments of each of these references."""

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """See :meth:`Metric.statistics`."""
        # Of its own, so that the n-grams of the references are counted once and do not stay.
        library = self.make([segments(stream) for stream in self.test_set.streams])
        return [library._extract_corpus_statistics(segments(one), None) for one in translations]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return self.library._compute_score_from_stats(list(sums)).score

    def corpus_score(self, statistics: Statistics) -> float:
        """See :meth:`Metric.corpus_score`."""
        return self.library._aggregate_and_compute(statistics).score

    def signed(self, details: Dict[str, object]) -> str:
        """See :meth:`Metric.signed`."""
        signature = self.library.get_signature()
        for name, value in details.items():
            signature.update(name, value)
        return str(signature)

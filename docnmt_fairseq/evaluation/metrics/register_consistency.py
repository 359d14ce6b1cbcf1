"""Register consistency: whether a document keeps to one second person, whichever that is."""

from typing import List, Sequence

from docnmt_fairseq.evaluation.metrics.base import METRICS, Statistics, percent
from docnmt_fairseq.evaluation.metrics.register_metric import RegisterMetric
from docnmt_fairseq.evaluation.texts import Stream


@METRICS.register("register-consistency")
class RegisterConsistency(RegisterMetric):
    """Documents all in one register, in percent of those that show a register in at least two sentences.

    Sure marks count alone, as in references: one sentence misread would break a document. It reads no reference, and
    describes only: a translation that says du to everybody is consistent, and true documents quote and mix. A
    document's row stands on its first sentence, so resample documents (``--test documents``). Where a resample has no
    such document, the score is 0.
    """

    title = "register consistency"
    help = "documents in one second person, of those that show one twice (--register-language)"
    judges = False

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """Whether a document is in one register, and whether it shows one twice; zeros but for its first sentence."""
        return [[row for document in one for row in self._rows(document)] for one in translations]

    def _rows(self, document: Sequence[str]) -> Statistics:
        found = [self.rule.register_of(sentence, sure_only=True) for sentence in document]
        shown = [register for register in found if register is not None]
        counts = len(shown) > 1
        first = [float(counts and len(set(shown)) == 1), float(counts)]
        return [first, *([0.0, 0.0] for _ in document[1:])]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return percent(sums[0], sums[1])

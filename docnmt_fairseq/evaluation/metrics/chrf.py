"""chrF (Popović 2015) and chrF++ (Popović 2017) by sacreBLEU."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Optional, Sequence

from docnmt_fairseq.evaluation.metrics.base import METRICS, MetricOptions
from docnmt_fairseq.evaluation.metrics.sacrebleu_metric import LOWERCASE, SacrebleuMetric
from docnmt_fairseq.options import option

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class ChrfOptions(MetricOptions):
    """Whether case counts."""

    lowercase: bool = option(False, LOWERCASE)


@METRICS.register("chrf")
class Chrf(SacrebleuMetric):
    """F2 of n-grams of up to six characters."""

    title = "chrF2"
    help = "n-grams of up to six characters"
    Options = ChrfOptions
    options: ChrfOptions
    word_order: ClassVar[int] = 0

    def make(self, references: Optional[Sequence[Sequence[str]]]) -> "CHRF":
        """See :meth:`SacrebleuMetric.make`."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(word_order=self.word_order, lowercase=self.options.lowercase, references=references)


@METRICS.register("chrf++")
class ChrfPlusPlus(Chrf):
    """The same with words and pairs of words among the n-grams."""

    title = "chrF2++"
    help = "chrf with words and pairs of words"
    word_order = 2

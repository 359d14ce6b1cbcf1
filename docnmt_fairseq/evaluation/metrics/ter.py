"""Translation edit rate (Snover et al. 2006) by sacreBLEU."""

from typing import TYPE_CHECKING, ClassVar, Optional, Sequence

from docnmt_fairseq.evaluation.metrics.base import METRICS
from docnmt_fairseq.evaluation.metrics.sacrebleu_metric import SacrebleuMetric

if TYPE_CHECKING:
    from sacrebleu.metrics.ter import TER


@METRICS.register("ter")
class Ter(SacrebleuMetric):
    """Edits in percent of the reference's tokens, without case."""

    title = "TER"
    help = "edits, without case (slow over long documents: seconds for 1,000 words, and more than its square)"
    lower_is_better = True
    case_sensitive: ClassVar[bool] = False

    def make(self, references: Optional[Sequence[Sequence[str]]]) -> "TER":
        """See :meth:`SacrebleuMetric.make`."""
        from sacrebleu.metrics.ter import TER

        return TER(case_sensitive=self.case_sensitive, references=references)

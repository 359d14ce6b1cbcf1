"""Register accuracy: whether translations use the second person (du or Sie, tu or vous, ...) that is needed."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence

from docnmt_fairseq.evaluation.metrics.base import METRICS, Statistics, percent
from docnmt_fairseq.evaluation.metrics.register_metric import RegisterMetric, RegisterOptions
from docnmt_fairseq.evaluation.register.labels import labels_of
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class RegisterAccuracyOptions(RegisterOptions):
    """The language, and which lines need which register."""

    register_labels: Optional[str] = option(
        None,
        "rows LINE<TAB>REGISTER, lines of the reference from 0, empty ones included (default: where the first "
        "reference shows one for sure, that)",
        metavar="FILE",
        by_line=True,
    )


@METRICS.register("register")
class RegisterAccuracy(RegisterMetric):
    """Sentences in the right register, in percent of the marked ones whose translation shows a register at all.

    Where a resample has none of these, the score is 0.

    Raises:
        InputError: no language is given, the labels cannot be read, or no line is marked.
    """

    title = "register"
    help = "right second person (--register-language), of the marked lines whose translation shows one"
    Options = RegisterAccuracyOptions
    options: RegisterAccuracyOptions

    def __init__(self, test_set: References, options: RegisterAccuracyOptions):
        super().__init__(test_set, options)
        labels = options.register_labels
        self.labels = labels_of(test_set, self.rule, None if labels is None else Path(labels))

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """Whether it is right, whether it shows a register, whether it is marked; 0 or 1 for each sentence."""
        return [list(map(self._row, segments(one), self.labels)) for one in translations]

    def _row(self, translation: str, needed: Optional[str]) -> List[float]:
        if needed is None:
            return [0.0, 0.0, 0.0]
        shown = self.rule.register_of(translation)
        return [float(shown == needed), float(shown is not None), 1.0]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return percent(sums[0], sums[1])


@METRICS.register("register-of-all")
class RegisterOfAll(RegisterAccuracy):
    """The same in percent of all marked sentences: avoiding the second person is wrong, too."""

    title = "register of all"
    help = "the same, of all marked lines"

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return percent(sums[0], sums[2])

"""Register accuracy and consistency: use of the second person (du or Sie, tu or vous, ...)."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import References, Stream, read_labels, segments
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class RegisterOptions(MetricOptions):
    """Options of register metrics."""

    register_language: Optional[str] = option(None, "language of the translations", names=RULES)


class RegisterMetric(Metric):
    """Base class of metrics that detect register with the rule of a language."""

    Options = RegisterOptions
    options: RegisterOptions
    requires = "register_language"
    scores_documents = False

    def __init__(self, test_set: References, options: RegisterOptions):
        super().__init__(test_set, options)
        self.rule = RULES[str(options.register_language)]()


@dataclass(frozen=True)
class RegisterAccuracyOptions(RegisterOptions):
    """Options of register accuracy."""

    register_labels: Optional[str] = option(
        None,
        "rows LINE<TAB>REGISTER, lines of the reference from 0, empty ones included (default: unambiguous markers of "
        "the first reference)",
        metavar="FILE",
        by_line=True,
    )


@METRICS.register("register")
class RegisterAccuracy(RegisterMetric):
    """Percentage of sentences in the correct register, among labelled ones whose translation shows a register."""

    title = "register"
    help = "correct second person (--register-language), of the labelled sentences whose translation shows one"
    Options = RegisterAccuracyOptions
    options: RegisterAccuracyOptions

    def __init__(self, test_set: References, options: RegisterAccuracyOptions):
        super().__init__(test_set, options)
        path = options.register_labels
        self.labels = labels_of(test_set, self.rule, None if path is None else Path(path))

    def statistics(self, translation: Stream) -> Statistics:
        """0 or 1 for each sentence: correct register, any register shown, labelled."""
        return list(map(self._row, segments(translation), self.labels))

    def _row(self, translation: str, label: Optional[str]) -> List[float]:
        if label is None:
            return [0.0, 0.0, 0.0]
        found = self.rule.register_of(translation)
        return [float(found == label), float(found is not None), 1.0]


@METRICS.register("register-of-all")
class RegisterOfAll(RegisterAccuracy):
    """Percentage of sentences in the correct register, among all labelled ones; avoiding the second person is wrong."""

    title = "register of all"
    help = "correct second person, of all labelled sentences"

    def score(self, sums: Sequence[float]) -> float:
        """Percentage of the labelled sentences."""
        return super().score([sums[0], sums[2]])


@METRICS.register("register-consistency")
class RegisterConsistency(RegisterMetric):
    """Percentage of documents in a single register, among those that show one in at least two sentences.

    Only unambiguous markers count, since one misread sentence would make a document inconsistent. The metric is
    descriptive and reads no reference: using du everywhere is consistent, and human documents quote and mix. The
    statistics of a document are in the row of its first sentence, so resample documents (``--test documents``).
    """

    title = "register consistency"
    help = "documents in one second person, of those that show one twice (--register-language)"
    measures_quality = False

    def statistics(self, translation: Stream) -> Statistics:
        """0 or 1 in the row of the first sentence of each document: single register, register shown twice."""
        rows: Statistics = []
        for document in translation:
            found = [self.rule.register_of(sentence, unambiguous_only=True) for sentence in document]
            shown = [register for register in found if register is not None]
            rows.append([float(len(shown) > 1 and len(set(shown)) == 1), float(len(shown) > 1)])
            rows += [[0.0, 0.0] for _ in document[1:]]
        return rows


def labels_of(references: References, rule: RegisterRule, path: Optional[Path]) -> List[Optional[str]]:
    """Required register of each sentence, [sentences]; None for unlabelled sentences.

    Args:
        references: test set.
        rule: rule of its language.
        path: rows ``LINE<TAB>REGISTER``; by default unambiguous markers of the first reference.

    Raises:
        InputError: invalid labels, or none.
    """
    if path is not None:
        found = read_labels(path, references, list(rule.markers))
    else:
        found = [rule.register_of(sentence, unambiguous_only=True) for sentence in segments(references.streams[0])]
    if not any(found):
        registers = " or ".join(rule.markers)
        raise InputError(
            f"{path or references.files[0]}: no {registers}; check --register-language or give --register-labels"
        )
    return found

"""Scores of sentences by any other program, e.g. a neural metric in its own environment: one number per line."""

from pathlib import Path
from typing import Collection, Dict, Iterable, List, Sequence, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.base import Statistics
from docnmt_fairseq.evaluation.texts import References, Stream

OPTION = "--segment-scores"


class SegmentScores(Metric):
    """Mean of given scores of sentences.

    Args:
        title: name of the metric.
        test_set: references.
        scores: by system, the score of each sentence.
        lower_is_better: True for error rates.
    """

    decimals = 4
    scores_documents = False

    def __init__(self, title: str, test_set: References, scores: Dict[str, List[float]], lower_is_better: bool):
        super().__init__(test_set, MetricOptions())
        self.title, self.scores = title, scores
        self.lower_is_better = lower_is_better  # type: ignore[misc]  # of this metric, not of the class

    def system_statistics(self, name: str, translation: Stream) -> Statistics:
        """Score and 1 for each sentence."""
        return [[score, 1.0] for score in self.scores[name]]

    def score(self, sums: Sequence[float]) -> float:
        """Mean of the sentences."""
        return sums[0] / sums[1] if sums[1] else 0.0

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature that says that the scores were given."""
        return "|".join(f"{name}:{value}" for name, value in {"scores": "given", **details}.items())


def read_segment_scores(
    files: Iterable[Tuple[str, str]], test_set: References, systems: Collection[str], lower_is_better: Collection[str]
) -> List[SegmentScores]:
    """Reads the metrics of a command line.

    Args:
        files: ``METRIC:SYSTEM`` and file.
        test_set: references.
        systems: names of all systems.
        lower_is_better: metrics that are error rates.

    Raises:
        InputError: a system without scores, or another number of scores than sentences.
    """
    by_metric: Dict[str, Dict[str, List[float]]] = {}
    for name, file in files:
        metric, _, system = name.rpartition(":")
        by_metric.setdefault(metric, {})[system] = read_scores(Path(file), test_set.sentences)
    for metric, scores in by_metric.items():
        missing = [system for system in systems if system not in scores]
        if missing:
            raise InputError(f"{OPTION} {metric}: no scores of {', '.join(missing)}")
    if unknown := set(lower_is_better) - by_metric.keys():
        raise InputError(f"--lower-is-better {' '.join(sorted(unknown))}: no such metric in {OPTION}")
    return [SegmentScores(name, test_set, by_metric[name], name in lower_is_better) for name in by_metric]


def read_scores(path: Path, sentences: int) -> List[float]:
    """Reads one number per sentence; empty lines, e.g. between documents, are skipped."""
    scores = [float(line) for line in read_lines(path) if line]
    if len(scores) != sentences:
        raise InputError(f"{path}: {len(scores)} scores, but the test set has {sentences} sentences")
    return scores

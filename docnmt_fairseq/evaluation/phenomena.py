"""How many of the words that only context decides a system got right."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Sequence, Tuple, TypeVar

from docnmt_fairseq.corpus.synth.table import Case
from docnmt_fairseq.errors import InputError

Key = TypeVar("Key", str, int, Tuple[str, int])


@dataclass(frozen=True)
class Accuracy:
    """``right`` of ``cases``, with the Wilson interval that holds the true share with 95 % confidence."""

    right: int
    cases: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The accuracy, from 0 to 1."""
        return self.right / self.cases

    def to_json(self) -> Dict[str, Any]:
        """The figures with the accuracy among them."""
        return {"accuracy": self.share, "right": self.right, "cases": self.cases, "interval": [self.low, self.high]}


@dataclass(frozen=True)
class PhenomenaAccuracy:
    """The accuracy of one system, overall and in parts; kinds and distances are in ascending order."""

    overall: Accuracy
    by_kind: Dict[str, Accuracy]
    by_distance: Dict[int, Accuracy]
    by_kind_and_distance: Dict[str, Dict[int, Accuracy]]

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain dictionaries."""
        return {
            "overall": self.overall.to_json(),
            "by_kind": {kind: figure.to_json() for kind, figure in self.by_kind.items()},
            "by_distance": {str(distance): figure.to_json() for distance, figure in self.by_distance.items()},
            "by_kind_and_distance": {
                kind: {str(distance): figure.to_json() for distance, figure in figures.items()}
                for kind, figures in self.by_kind_and_distance.items()
            },
        }


def accuracy_of(right: int, cases: int) -> Accuracy:
    """The accuracy of ``right`` out of ``cases`` (at least one) with its interval."""
    from scipy.stats import binomtest

    interval = binomtest(right, cases).proportion_ci(confidence_level=0.95, method="wilson")
    return Accuracy(right, cases, float(interval.low), float(interval.high))


def judge(cases: Sequence[Case], lines: Sequence[str]) -> List[bool]:
    """For each case, whether its sentence holds the right form and none of the wrong ones.

    Args:
        cases: the table of a split.
        lines: the hypotheses in document order, marks included, as ``restore_document_order`` gives them.

    Raises:
        InputError: a case lies beyond the lines.
    """
    verdicts = []
    for case in cases:
        if case.id >= len(lines):
            raise InputError(f"line {case.id + 1} of the phenomena table lies beyond the {len(lines)} lines translated")
        words = set(lines[case.id].split())
        verdicts.append(case.right in words and words.isdisjoint(case.wrong))
    return verdicts


def measure(cases: Sequence[Case], lines: Sequence[str]) -> PhenomenaAccuracy:
    """The accuracy of hypotheses in document order against a (non-empty) table of cases."""
    judged = list(zip(cases, judge(cases, lines)))
    pairs = _group(judged, lambda case: (case.kind, case.distance))
    kinds = _group(judged, lambda case: case.kind)
    return PhenomenaAccuracy(
        overall=accuracy_of(sum(right for _, right in judged), len(judged)),
        by_kind=kinds,
        by_distance=_group(judged, lambda case: case.distance),
        by_kind_and_distance={
            kind: {distance: figure for (other, distance), figure in pairs.items() if other == kind} for kind in kinds
        },
    )


def by_distance_range(
    accuracy: PhenomenaAccuracy, ranges: Sequence[Tuple[int, int]]
) -> Dict[Tuple[int, int], Accuracy]:
    """The accuracy over all kinds in ranges of distances (both ends included), those with cases only."""
    found = {}
    for low, high in ranges:
        parts = [figure for distance, figure in accuracy.by_distance.items() if low <= distance <= high]
        if parts:
            found[low, high] = accuracy_of(sum(part.right for part in parts), sum(part.cases for part in parts))
    return found


def _group(judged: Sequence[Tuple[Case, bool]], key: Callable[[Case], Key]) -> Dict[Key, Accuracy]:
    groups: Dict[Key, List[bool]] = {}
    for case, right in judged:
        groups.setdefault(key(case), []).append(right)
    return {name: accuracy_of(sum(groups[name]), len(groups[name])) for name in sorted(groups)}

"""Report of ``docnmt score --synth``: accuracy on the context-dependent words of an artificial corpus."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, TypeVar

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth.cases import Case, read_cases
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import restore_document_order
from docnmt_fairseq.evaluation.scores import Scores, corpus_scores
from docnmt_fairseq.evaluation.tables import Part, Table
from docnmt_fairseq.files import parse_json

Key = TypeVar("Key", str, int, Tuple[str, int])


@dataclass(frozen=True)
class Accuracy:
    """Number of correct cases with the 95 % Wilson interval of their share."""

    right: int
    cases: int
    low: float
    high: float

    @classmethod
    def of(cls, right: int, cases: int) -> "Accuracy":
        """Accuracy of ``right`` out of ``cases``, at least one."""
        from scipy.stats import binomtest

        interval = binomtest(right, cases).proportion_ci(confidence_level=0.95, method="wilson")
        return cls(right, cases, float(interval.low), float(interval.high))

    @property
    def share(self) -> float:
        """Accuracy from 0 to 1."""
        return self.right / self.cases

    def to_json(self) -> Dict[str, Any]:
        """Figures as plain values."""
        return {"accuracy": self.share, "right": self.right, "cases": self.cases, "interval": [self.low, self.high]}


@dataclass(frozen=True)
class PhenomenaAccuracy:
    """Accuracy of one system, overall and by kind and distance, in ascending order."""

    overall: Accuracy
    by_kind: Dict[str, Accuracy]
    by_distance: Dict[int, Accuracy]
    by_kind_and_distance: Dict[str, Dict[int, Accuracy]]

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain dictionaries."""
        return {
            "overall": self.overall.to_json(),
            "by_kind": _plain(self.by_kind),
            "by_distance": _plain(self.by_distance),
            "by_kind_and_distance": {kind: _plain(figures) for kind, figures in self.by_kind_and_distance.items()},
        }


def _plain(figures: Mapping[Any, Accuracy]) -> Dict[str, Any]:
    return {str(key): accuracy.to_json() for key, accuracy in figures.items()}


def is_correct(case: Case, lines: Sequence[str]) -> bool:
    """Returns whether the sentence of a case contains the correct form and none of the incorrect ones.

    Raises:
        InputError: the case is beyond the lines.
    """
    if case.id >= len(lines):
        raise InputError(f"line {case.id + 1} of the phenomena table is beyond the {len(lines)} translated lines")
    words = set(lines[case.id].split())
    return case.right in words and words.isdisjoint(case.wrong)


def measure(cases: Sequence[Case], lines: Sequence[str]) -> PhenomenaAccuracy:
    """Accuracy of a translation.

    Args:
        cases: phenomena table of a split, not empty.
        lines: translation in document order, with boundaries.
    """
    judged = [(case, is_correct(case, lines)) for case in cases]
    kinds = _group(judged, lambda case: case.kind)
    pairs = _group(judged, lambda case: (case.kind, case.distance))
    return PhenomenaAccuracy(
        overall=Accuracy.of(sum(right for _, right in judged), len(judged)),
        by_kind=kinds,
        by_distance=_group(judged, lambda case: case.distance),
        by_kind_and_distance={
            kind: {distance: figure for (other, distance), figure in pairs.items() if other == kind} for kind in kinds
        },
    )


def _group(judged: Sequence[Tuple[Case, bool]], key: Callable[[Case], Key]) -> Dict[Key, Accuracy]:
    groups: Dict[Key, List[bool]] = {}
    for case, right in judged:
        groups.setdefault(key(case), []).append(right)
    return {name: Accuracy.of(sum(groups[name]), len(groups[name])) for name in sorted(groups)}


@dataclass(frozen=True)
class SystemResult:
    """Scores and accuracy of one system."""

    scores: Scores
    accuracy: PhenomenaAccuracy


@dataclass(frozen=True)
class SynthReport:
    """Results of systems on a split, with the ceiling of systems without context."""

    systems: Dict[str, SystemResult]
    ceiling: Mapping[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain dictionaries."""
        systems = {
            name: {"scores": result.scores.to_json(), "phenomena": result.accuracy.to_json()}
            for name, result in self.systems.items()
        }
        return {"systems": systems, "ceiling": self.ceiling}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        first = next(iter(self.systems.values()))
        kinds = list(first.accuracy.by_kind)
        rows = [["system", "BLEU", "chrF", *kinds, "overall"]]
        for name, result in self.systems.items():
            figures = [*result.accuracy.by_kind.values(), result.accuracy.overall]
            shares = [f"{100 * figure.share:.1f}" for figure in figures]
            rows.append([name, f"{result.scores.bleu:.1f}", f"{result.scores.chrf:.1f}", *shares])
        for label, key in (("ceiling without context", "accuracy"), ("its upper bound", "upper_bound")):
            ceilings = [*(self.ceiling["kinds"][kind] for kind in kinds), self.ceiling["overall"]]
            rows.append([label, "", "", *(f"{100 * figures[key]:.1f}" for figures in ceilings)])
        signatures = f"BLEU {first.scores.bleu_signature}\nchrF {first.scores.chrf_signature}"
        size = f"{first.scores.sentences} sentences, {first.accuracy.overall.cases} context-dependent words"
        return [Table(rows), Table(self._distances(first)), f"{signatures}\n{size}"]

    def _distances(self, first: SystemResult) -> List[List[str]]:
        ranges = distance_ranges(min(first.accuracy.by_distance), max(first.accuracy.by_distance))
        rows = [["distance", *(f"{low}-{high}" if low < high else str(low) for low, high in ranges)]]
        for name, result in self.systems.items():
            cells = []
            for low, high in ranges:
                found = [one for distance, one in result.accuracy.by_distance.items() if low <= distance <= high]
                right, cases = sum(one.right for one in found), sum(one.cases for one in found)
                cells.append(f"{100 * right / cases:.1f}" if cases else "-")
            rows.append([name, *cells])
        return rows

    def check_minimum(self, name: str, minimum: float) -> None:
        """Raises :class:`InputError` if the accuracy of a system is below ``minimum`` (a share) on any kind."""
        figures = self.systems[name].accuracy.by_kind
        low = [f"{kind} {100 * figure.share:.1f} %" for kind, figure in figures.items() if figure.share < minimum]
        if low:
            raise InputError(f"--assert-minimum {name}={minimum}: accuracy of {', '.join(low)}; train longer")

    def check_ceiling(self, name: str) -> None:
        """Raises :class:`InputError` if a system exceeds the upper bound of systems without context on any kind."""
        figures, ceilings = self.systems[name].accuracy.by_kind, self.ceiling["kinds"]
        high = [
            f"{kind} {100 * figure.share:.1f} % (upper bound {100 * ceilings[kind]['upper_bound']:.1f} %)"
            for kind, figure in figures.items()
            if figure.share > ceilings[kind]["upper_bound"]
        ]
        if high:
            raise InputError(f"--assert-ceiling {name}: accuracy of {', '.join(high)}; the system uses context")


def build_report(corpus: Path, split: str, logs: Mapping[str, Path]) -> SynthReport:
    """Scores systems on a split of an artificial corpus.

    Args:
        corpus: output of ``docnmt synth``.
        split: "test" or "valid".
        logs: output of ``fairseq-generate`` by system.

    Raises:
        InputError: missing files, or a log that does not cover the split.
    """
    lexicon = _read_json(corpus / "lexicon.json")
    ceiling = _read_json(corpus / f"{split}.ceiling.json")
    source, target = (corpus / f"{split}.{lexicon['options'][f'{side}_lang']}" for side in ("source", "target"))
    cases = read_cases(corpus / f"{split}.phenomena.tsv")
    reference = list(read_lines(target))
    systems = {}
    for name, log in logs.items():
        lines = restore_document_order(log, source)
        systems[name] = SystemResult(corpus_scores(lines, reference), measure(cases, lines))
    return SynthReport(systems, ceiling)


def distance_ranges(low: int, high: int) -> List[Tuple[int, int]]:
    """At most four consecutive ranges, both ends included, that cover ``low`` to ``high``."""
    step = -(-(high - low + 1) // 4)
    return [(start, min(high, start + step - 1)) for start in range(low, high + 1, step)]


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"{path}: no such file; --synth must be the output of docnmt synth")
    return parse_json(path.read_text(encoding="utf-8"))

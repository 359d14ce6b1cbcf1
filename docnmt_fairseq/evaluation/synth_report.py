"""Report of ``docnmt score --synth``: accuracy on the context-dependent words of an artificial corpus."""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth import Case, read_cases
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.postprocess import corpus_scores
from docnmt_fairseq.evaluation.tables import Part, Table
from docnmt_fairseq.evaluation.texts import restore_document_order

Figures = Dict[str, Any]  # accuracy, right, cases, and the 95 % Wilson interval of the accuracy


def is_correct(case: Case, lines: Sequence[str]) -> bool:
    """Returns whether the sentence of a case contains the correct form and none of the incorrect ones."""
    words = set(lines[case.id].split())
    return case.right in words and words.isdisjoint(case.wrong)


def measure(cases: Sequence[Case], lines: Sequence[str]) -> Dict[str, Any]:
    """Accuracy of a translation: overall, by kind, by distance, and by kind and distance, in ascending order.

    Args:
        cases: phenomena table of a split, not empty.
        lines: translation in document order, with boundaries.
    """
    groups: Dict[Tuple[str, int], List[bool]] = defaultdict(list)
    for case in cases:
        groups[case.kind, case.distance].append(is_correct(case, lines))
    kinds, distances = sorted({kind for kind, _ in groups}), sorted({distance for _, distance in groups})
    return {
        "overall": accuracy_of(groups.values()),
        "by_kind": {kind: accuracy_of(v for key, v in groups.items() if key[0] == kind) for kind in kinds},
        "by_distance": {str(d): accuracy_of(v for key, v in groups.items() if key[1] == d) for d in distances},
        "by_kind_and_distance": {
            kind: {str(d): accuracy_of([groups[kind, d]]) for d in distances if (kind, d) in groups} for kind in kinds
        },
    }


def accuracy_of(groups: Iterable[Sequence[bool]]) -> Figures:
    """Accuracy of the judged cases of all groups."""
    from scipy.stats import binomtest

    judged = [right for group in groups for right in group]
    interval = binomtest(sum(judged), len(judged)).proportion_ci(confidence_level=0.95, method="wilson")
    return {
        "accuracy": sum(judged) / len(judged),
        "right": sum(judged),
        "cases": len(judged),
        "interval": [float(interval.low), float(interval.high)],
    }


@dataclass(frozen=True)
class SynthReport:
    """Scores and accuracy (``phenomena``) by system, and the ceiling of systems without context."""

    systems: Dict[str, Dict[str, Any]]
    ceiling: Mapping[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain dictionaries."""
        return {"systems": self.systems, "ceiling": self.ceiling}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        first = next(iter(self.systems.values()))
        scores, kinds = first["scores"], list(first["phenomena"]["by_kind"])
        rows = [["system", "BLEU", "chrF", *kinds, "overall"]]
        for name, system in self.systems.items():
            figures = [*system["phenomena"]["by_kind"].values(), system["phenomena"]["overall"]]
            shares = [f"{100 * figure['accuracy']:.1f}" for figure in figures]
            rows.append([name, *(f"{system['scores'][metric]:.1f}" for metric in ("bleu", "chrf")), *shares])
        for label, key in (("ceiling without context", "accuracy"), ("99.9 % upper bound", "upper_bound")):
            ceilings = [*(self.ceiling["kinds"][kind] for kind in kinds), self.ceiling["overall"]]
            rows.append([label, "", "", *(f"{100 * figures[key]:.1f}" for figures in ceilings)])
        signatures = f"BLEU {scores['bleu_signature']}\nchrF {scores['chrf_signature']}"
        size = f"{scores['sentences']} sentences, {first['phenomena']['overall']['cases']} context-dependent words"
        return [Table(rows), Table(self._distances()), f"{signatures}\n{size}"]

    def _distances(self) -> List[List[str]]:
        by_distance = {name: system["phenomena"]["by_distance"] for name, system in self.systems.items()}
        known = list(map(int, next(iter(by_distance.values()))))
        ranges = distance_ranges(min(known), max(known))
        rows = [["distance", *(f"{low}-{high}" if low < high else str(low) for low, high in ranges)]]
        for name, figures in by_distance.items():
            cells = []
            for low, high in ranges:
                found = [one for distance, one in figures.items() if low <= int(distance) <= high]
                right, cases = sum(one["right"] for one in found), sum(one["cases"] for one in found)
                cells.append(f"{100 * right / cases:.1f}" if cases else "-")
            rows.append([name, *cells])
        return rows

    def check_minimum(self, name: str, minimum: float) -> None:
        """Raises :class:`InputError` if the accuracy of a system is below ``minimum`` (a share) on any kind."""
        figures = self.systems[name]["phenomena"]["by_kind"]
        low = [f"{kind} {100 * one['accuracy']:.1f} %" for kind, one in figures.items() if one["accuracy"] < minimum]
        if low:
            raise InputError(f"--assert-minimum {name}={minimum}: accuracy of {', '.join(low)}; train longer")

    def check_ceiling(self, name: str) -> None:
        """Raises :class:`InputError` if a system exceeds the upper bound of systems without context on any kind."""
        high = []
        for kind, figure in self.systems[name]["phenomena"]["by_kind"].items():
            bound = self.ceiling["kinds"][kind]["upper_bound"]
            if figure["accuracy"] > bound:
                high.append(f"{kind} {100 * figure['accuracy']:.1f} % (upper bound {100 * bound:.1f} %)")
        if high:
            raise InputError(f"--assert-ceiling {name}: accuracy of {', '.join(high)}; the system uses context")


def build_report(corpus: Path, split: str, logs: Mapping[str, Path]) -> SynthReport:
    """Scores systems on a split of an artificial corpus.

    Args:
        corpus: output of ``docnmt synth``.
        split: "test" or "valid".
        logs: output of ``fairseq-generate`` by system.

    Raises:
        InputError: a log that does not cover the split.
    """
    files = (corpus / "lexicon.json", corpus / f"{split}.ceiling.json")
    lexicon, ceiling = (json.loads(file.read_bytes()) for file in files)
    source, target = (corpus / f"{split}.{lexicon['options'][f'{side}_lang']}" for side in ("source", "target"))
    cases = read_cases(corpus / f"{split}.phenomena.tsv")
    reference = list(read_lines(target))
    systems = {}
    for name, log in logs.items():
        lines = restore_document_order(log, source)
        systems[name] = {"scores": corpus_scores(lines, reference), "phenomena": measure(cases, lines)}
    return SynthReport(systems, ceiling)


def distance_ranges(low: int, high: int) -> List[Tuple[int, int]]:
    """At most four consecutive ranges, both ends included, that cover ``low`` to ``high``."""
    step = -(-(high - low + 1) // 4)
    return [(start, min(high, start + step - 1)) for start in range(low, high + 1, step)]

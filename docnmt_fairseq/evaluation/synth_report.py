"""Results of several systems on an artificial corpus: gathered, tabulated, and held against bounds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.synth.table import read_cases
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import restore_document_order
from docnmt_fairseq.evaluation.phenomena import PhenomenaAccuracy, by_distance_range, measure
from docnmt_fairseq.evaluation.scores import Scores, corpus_scores
from docnmt_fairseq.evaluation.tables import aligned
from docnmt_fairseq.plain_json import parse_json


@dataclass(frozen=True)
class SystemResult:
    """The scores and the accuracy of one system."""

    scores: Scores
    accuracy: PhenomenaAccuracy


@dataclass(frozen=True)
class SynthReport:
    """The results of named systems on one split, with the split's ceiling without context."""

    systems: Dict[str, SystemResult]
    ceiling: Mapping[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """Every figure as plain dictionaries."""
        systems = {
            name: {"scores": result.scores.to_json(), "phenomena": result.accuracy.to_json()}
            for name, result in self.systems.items()
        }
        return {"systems": systems, "ceiling": self.ceiling}


def build_report(corpus: Path, split: str, logs: Mapping[str, Path]) -> SynthReport:
    """Scores the systems whose ``fairseq-generate`` output ``logs`` names.

    Raises:
        InputError: a file of the corpus is missing or damaged, or a log does not cover the split.
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


def check_minimum(report: SynthReport, name: str, minimum: float) -> None:
    """Refuses a system that is below ``minimum`` (a share) on any kind.

    Raises:
        InputError: it is; names the kinds and their accuracy.
    """
    figures = _system(report, name).accuracy.by_kind
    low = [f"{kind} {100 * figure.share:.1f} %" for kind, figure in figures.items() if figure.share < minimum]
    if low:
        raise InputError(f"--assert-minimum {name}={minimum}: below it in {', '.join(low)}; train longer or look why")


def check_ceiling(report: SynthReport, name: str) -> None:
    """Refuses a system that is better than one without context can be, even by luck.

    Raises:
        InputError: it is, on some kind; names the kinds, their accuracy and bound.
    """
    figures, ceilings = _system(report, name).accuracy.by_kind, report.ceiling["kinds"]
    high = [
        f"{kind} {100 * figure.share:.1f} % (bound {100 * ceilings[kind]['upper_bound']:.1f} %)"
        for kind, figure in figures.items()
        if figure.share > ceilings[kind]["upper_bound"]
    ]
    if high:
        raise InputError(
            f"--assert-ceiling {name}: above the ceiling without context in {', '.join(high)}; it sees more"
        )


def format_report(report: SynthReport) -> str:
    """Lays the tables out as text: scores and accuracy by kind, then accuracy by distance, then the signatures."""
    first = next(iter(report.systems.values()))
    kinds = list(first.accuracy.by_kind)
    rows = [["system", "BLEU", "chrF", *kinds, "overall"]]
    for name, result in report.systems.items():
        figures = [*result.accuracy.by_kind.values(), result.accuracy.overall]
        shares = [f"{100 * figure.share:.1f}" for figure in figures]
        rows.append([name, f"{result.scores.bleu:.1f}", f"{result.scores.chrf:.1f}", *shares])
    for label, key in (("best without context", "accuracy"), ("the same with luck", "upper_bound")):
        ceilings = [*(report.ceiling["kinds"][kind] for kind in kinds), report.ceiling["overall"]]
        rows.append([label, "", "", *(f"{100 * figures[key]:.1f}" for figures in ceilings)])

    ranges = distance_ranges(min(first.accuracy.by_distance), max(first.accuracy.by_distance))
    distances = [["distance", *(f"{low}-{high}" if low < high else str(low) for low, high in ranges)]]
    for name, result in report.systems.items():
        found = by_distance_range(result.accuracy, ranges)
        distances.append([name, *(f"{100 * found[r].share:.1f}" if r in found else "-" for r in ranges)])

    signatures = [f"BLEU {first.scores.bleu_signature}", f"chrF {first.scores.chrf_signature}"]
    held = f"{first.scores.sentences} sentences, {first.accuracy.overall.cases} words that only context decides"
    return "\n\n".join([aligned(rows), aligned(distances), "\n".join([*signatures, held])])


def distance_ranges(low: int, high: int) -> List[Tuple[int, int]]:
    """At most four consecutive ranges (both ends included) that cover ``low`` to ``high``."""
    step = -(-(high - low + 1) // 4)
    return [(start, min(high, start + step - 1)) for start in range(low, high + 1, step)]


def _system(report: SynthReport, name: str) -> SystemResult:
    if name not in report.systems:
        raise InputError(f"'{name}' is not a system of this report; it has {', '.join(report.systems)}")
    return report.systems[name]


def _read_json(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"{path}: no such file; --corpus must be a folder that docnmt synth wrote")
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); write the corpus again") from None

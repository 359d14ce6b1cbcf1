"""Report of ``docnmt contrast``: accuracy overall and by attributes of the items, with intervals."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from docnmt_fairseq.evaluation.contrast.items import Attribute, ContrastItem
from docnmt_fairseq.evaluation.contrast.scoring import OUTCOMES, Answer
from docnmt_fairseq.evaluation.significance import IntervalOptions, format_interval
from docnmt_fairseq.evaluation.tables import Part, Table

COLUMNS = ["", "accuracy", "95 % interval", "chance", "items", "wrong", "ties", "NaN"]

# Accuracy (from 0 to 1), items, its 95 % interval (None for items of a single document), chance (accuracy of a random
# choice; None for generation items), and the number of items by outcome.
Figures = Dict[str, Any]


@dataclass(frozen=True)
class ContrastReport:
    """Results of a model on a set.

    Attributes:
        overall: figures of all items.
        groups: figures by attribute and its value, in order.
        answers: to all items.
        about: names and values of the settings.
    """

    overall: Figures
    groups: Dict[str, Dict[Attribute, Figures]]
    answers: Sequence[Answer]
    about: Dict[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """All figures and answers as plain values; scores that are not finite are None."""
        answers = []
        for answer in self.answers:
            scores = [score if math.isfinite(score) else None for score in answer.scores]
            given = {"scores": scores} if scores else {"translation": answer.translation}
            answers.append({"item": answer.item.name, "outcome": answer.outcome, **given, **answer.item.attributes})
        groups = {name: {str(value): one for value, one in values.items()} for name, values in self.groups.items()}
        return {"about": self.about, "overall": self.overall, "groups": groups, "answers": answers}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        parts: List[Part] = [Table([COLUMNS, _row("all", self.overall)])]
        for name, values in self.groups.items():
            parts.append(Table([COLUMNS, *(_row(str(value), one) for value, one in values.items())], f"By {name}"))
        return [*parts, "; ".join(f"{name}: {value}" for name, value in self.about.items())]


def _row(name: str, figures: Figures) -> List[str]:
    interval = figures["interval"] and tuple(100 * end for end in figures["interval"])
    chance = "-" if figures["chance"] is None else f"{100 * figures['chance']:.1f} %"
    counts = [str(figures[name]) for name in ("items", "wrong", "tie", "nan")]
    return [name, f"{100 * figures['accuracy']:.1f} %", format_interval(interval, "{:.1f}"), chance, *counts]


def build_report(
    answers: Sequence[Answer], about: Dict[str, Any], intervals: IntervalOptions = IntervalOptions()
) -> ContrastReport:
    """Summarises answers, overall and by attribute.

    Args:
        answers: at least one.
        about: names and values of the settings.
        intervals: bootstrap of the intervals.
    """
    names: List[Tuple[str, ...]] = [(name,) for name in dict.fromkeys(chain(*(one.item.attributes for one in answers)))]
    if {("phenomenon",), ("distance",)} <= set(names):
        names.append(("phenomenon", "distance"))
    groups: Dict[str, Dict[Attribute, Figures]] = {}
    for parts in names:
        members: Dict[Tuple[Attribute, ...], List[Answer]] = defaultdict(list)
        for answer in answers:
            if all(part in answer.item.attributes for part in parts):
                members[tuple(answer.item.attributes[part] for part in parts)].append(answer)
        groups[", ".join(parts)] = {
            (value[0] if len(value) == 1 else ", ".join(map(str, value))): _figures(members[value], intervals)
            for value in sorted(members, key=_numbers_first)
        }
    about = {**about, "items": len(answers), "resampled": intervals.describe()}
    return ContrastReport(_figures(answers, intervals), groups, answers, about)


def _numbers_first(value: Tuple[Attribute, ...]) -> Tuple[Tuple[bool, Attribute], ...]:
    return tuple((isinstance(part, str), part) for part in value)


def _figures(answers: Sequence[Answer], intervals: IntervalOptions) -> Figures:
    counts = Counter(answer.outcome for answer in answers)
    chances = [1 / len(answer.item.candidates) for answer in answers if isinstance(answer.item, ContrastItem)]
    right = [answer.outcome == "right" for answer in answers]
    interval = intervals.of_mean(right, [answer.item.document.name for answer in answers])
    return {
        "accuracy": sum(right) / len(right),
        "items": len(answers),
        "interval": None if interval is None else list(interval),
        "chance": float(np.mean(chances)) if chances else None,
        **{outcome: counts[outcome] for outcome in OUTCOMES},
    }

"""Report of ``docnmt contrast``: accuracy overall and by attributes of the items, with intervals."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.evaluation.contrast.items import Attribute, ContrastItem
from docnmt_fairseq.evaluation.contrast.scoring import OUTCOMES, Answer
from docnmt_fairseq.evaluation.significance import Interval, check_bootstrap, format_interval, interval_of_mean
from docnmt_fairseq.evaluation.tables import Part, Table

COLUMNS = ["", "accuracy", "95 % interval", "chance", "items", "wrong", "ties", "NaN"]


@dataclass(frozen=True)
class ContrastAccuracy:
    """Accuracy on a set of items.

    Attributes:
        counts: items by outcome; ties and NaN are incorrect.
        interval: 95 % interval of the accuracy, from 0 to 1; None for items of a single document.
        chance: accuracy of a random choice; None for generation items.
    """

    counts: Dict[str, int]
    interval: Interval
    chance: Optional[float]

    @property
    def items(self) -> int:
        """Number of items."""
        return sum(self.counts.values())

    @property
    def accuracy(self) -> float:
        """Share of correct answers, from 0 to 1."""
        return self.counts["right"] / self.items

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain values."""
        interval = None if self.interval is None else list(self.interval)
        about = {"accuracy": self.accuracy, "items": self.items, "interval": interval, "chance": self.chance}
        return {**about, **self.counts}

    def row(self, name: str) -> List[str]:
        """Row of the table."""
        interval = None if self.interval is None else (100 * self.interval[0], 100 * self.interval[1])
        chance = "-" if self.chance is None else f"{100 * self.chance:.1f} %"
        wrong = [str(self.counts[outcome]) for outcome in ("wrong", "tie", "nan")]
        accuracy = [f"{100 * self.accuracy:.1f} %", format_interval(interval, "{:.1f}")]
        return [name, *accuracy, chance, str(self.items), *wrong]


@dataclass(frozen=True)
class ContrastReport:
    """Results of a model on a set.

    Attributes:
        overall: accuracy on all items.
        groups: accuracy by attribute and its value, in order.
        answers: to all items.
        about: names and values of the settings.
    """

    overall: ContrastAccuracy
    groups: Dict[str, Dict[Attribute, ContrastAccuracy]]
    answers: List[Answer]
    about: Dict[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """All figures and answers as plain values; scores that are not finite are None."""
        groups = {
            name: {str(value): accuracy.to_json() for value, accuracy in values.items()}
            for name, values in self.groups.items()
        }
        answers = [
            {
                "item": answer.item.name,
                "outcome": answer.outcome,
                **({"scores": _finite(answer.scores)} if answer.scores else {"translation": answer.translation}),
                **answer.item.attributes,
            }
            for answer in self.answers
        ]
        return {"about": self.about, "overall": self.overall.to_json(), "groups": groups, "answers": answers}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        parts: List[Part] = [Table([COLUMNS, self.overall.row("all")])]
        for name, values in self.groups.items():
            rows = [accuracy.row(str(value)) for value, accuracy in values.items()]
            parts.append(Table([COLUMNS, *rows], f"By {name}"))
        return [*parts, "; ".join(f"{name}: {value}" for name, value in self.about.items())]


def build_report(
    answers: Sequence[Answer], about: Dict[str, Any], samples: int = 1000, seed: int = 1
) -> ContrastReport:
    """Summarises answers, overall and by attribute; intervals are those of a bootstrap over documents.

    Args:
        answers: at least one.
        about: names and values of the settings.
        samples: number of resamples.
        seed: random seed.

    Raises:
        InputError: numbers out of range.
    """
    check_bootstrap(samples, seed)
    names: List[Tuple[str, ...]] = [(name,) for name in dict.fromkeys(chain(*(one.item.attributes for one in answers)))]
    if {("phenomenon",), ("distance",)} <= set(names):
        names.append(("phenomenon", "distance"))
    groups: Dict[str, Dict[Attribute, ContrastAccuracy]] = {}
    for parts in names:
        members: Dict[Tuple[Attribute, ...], List[Answer]] = {}
        for answer in answers:
            if all(part in answer.item.attributes for part in parts):
                members.setdefault(tuple(answer.item.attributes[part] for part in parts), []).append(answer)
        groups[", ".join(parts)] = {
            (value[0] if len(value) == 1 else ", ".join(map(str, value))): _accuracy(members[value], samples, seed)
            for value in sorted(members, key=_sort_key)
        }
    about = {**about, "items": len(answers), "resampled": f"documents, {samples:,} times, seed {seed}"}
    return ContrastReport(_accuracy(answers, samples, seed), groups, list(answers), about)


def _finite(scores: Sequence[float]) -> List[Optional[float]]:
    return [score if math.isfinite(score) else None for score in scores]


def _sort_key(value: Tuple[Attribute, ...]) -> Tuple[Tuple[bool, Attribute], ...]:
    """Sorts numbers before text."""
    return tuple((isinstance(part, str), part) for part in value)


def _accuracy(answers: Sequence[Answer], samples: int, seed: int) -> ContrastAccuracy:
    counts = Counter(answer.outcome for answer in answers)
    chances = [1 / len(answer.item.candidates) for answer in answers if isinstance(answer.item, ContrastItem)]
    right = [answer.outcome == "right" for answer in answers]
    documents = [answer.item.document.name for answer in answers]
    return ContrastAccuracy(
        counts={outcome: counts[outcome] for outcome in OUTCOMES},
        interval=interval_of_mean(right, documents, samples, seed),
        chance=float(np.mean(chances)) if chances else None,
    )

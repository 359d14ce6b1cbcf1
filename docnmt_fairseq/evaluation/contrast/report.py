"""Accuracy on contrastive items, overall and by what is known of them, with intervals; as text, Markdown or JSON."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.evaluation.bootstrap import Interval, check_bootstrap, interval_of_mean, interval_text
from docnmt_fairseq.evaluation.contrast.items import Fact, Item
from docnmt_fairseq.evaluation.contrast.judging import OUTCOMES, Answer
from docnmt_fairseq.evaluation.tables import aligned, markdown


@dataclass(frozen=True)
class Figures:
    """The accuracy on some items.

    Attributes:
        counts: items by outcome; ties and scores that are no numbers are wrong answers.
        interval: of 95 % of the resampled accuracies, from 0 to 1; None for items of a single document.
        chance: accuracy of drawing a candidate blindly; None where a translation was asked for.
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
        """Share of right answers, from 0 to 1."""
        return self.counts["right"] / self.items

    def to_json(self) -> Dict[str, Any]:
        """The figures as a plain dictionary."""
        interval = None if self.interval is None else list(self.interval)
        about = {"accuracy": self.accuracy, "items": self.items, "interval": interval, "chance": self.chance}
        return {**about, **self.counts}


@dataclass(frozen=True)
class ContrastReport:
    """The figures of a model on a set.

    Attributes:
        overall: of all items.
        groups: by the name of a fact and its value, those in their order.
        answers: to all items.
        about: what was done, a name and a value each.
    """

    overall: Figures
    groups: Dict[str, Dict[Fact, Figures]]
    answers: List[Answer]
    about: Dict[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """Everything, every answer included, as plain dictionaries; a score that is no finite number is None."""
        groups = {
            name: {str(value): figures.to_json() for value, figures in values.items()}
            for name, values in self.groups.items()
        }
        answers = [
            {
                "item": answer.item.name,
                "outcome": answer.outcome,
                **({"scores": _numbers(answer.scores)} if answer.scores else {"translation": answer.translation}),
                **answer.item.facts,
            }
            for answer in self.answers
        ]
        return {"about": self.about, "overall": self.overall.to_json(), "groups": groups, "answers": answers}


def build_report(
    answers: Sequence[Answer], about: Dict[str, Any], samples: int = 1000, seed: int = 1
) -> ContrastReport:
    """Counts answers, overall and by what is known of their items.

    Intervals are those of a bootstrap over documents: the answers about one document are drawn together, since they
    are right or wrong together.

    Args:
        answers: at least one.
        about: kept for the reader.
        samples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        InputError: an option out of range.
    """
    check_bootstrap(samples, seed)
    names = list(dict.fromkeys(name for answer in answers for name in answer.item.facts))
    groups: Dict[str, Dict[Fact, Figures]] = {}
    if {"phenomenon", "distance"} <= set(names):
        names.append("phenomenon, distance")
    for name in names:
        parts = [part.strip() for part in name.split(",")] if name == "phenomenon, distance" else [name]
        members: Dict[Tuple[Fact, ...], List[Answer]] = {}
        for answer in answers:
            if all(part in answer.item.facts for part in parts):
                members.setdefault(tuple(answer.item.facts[part] for part in parts), []).append(answer)
        groups[name] = {
            (value[0] if len(value) == 1 else ", ".join(map(str, value))): _figures(members[value], samples, seed)
            for value in sorted(members, key=_order)
        }
    about = {**about, "items": len(answers), "resampled": f"documents, {samples:,} times, seed {seed}"}
    return ContrastReport(_figures(answers, samples, seed), groups, list(answers), about)


def _numbers(scores: Sequence[float]) -> List[Optional[float]]:
    return [score if math.isfinite(score) else None for score in scores]


def _order(value: Tuple[Fact, ...]) -> Tuple[Tuple[bool, Fact], ...]:
    return tuple((isinstance(part, str), part) for part in value)


def _figures(answers: Sequence[Answer], samples: int, seed: int) -> Figures:
    found = Counter(answer.outcome for answer in answers)
    chances = [1 / len(answer.item.candidates) for answer in answers if isinstance(answer.item, Item)]
    return Figures(
        counts={outcome: found[outcome] for outcome in OUTCOMES},
        interval=interval_of_mean(
            [answer.outcome == "right" for answer in answers],
            [answer.item.document.name for answer in answers],
            samples,
            seed,
        ),
        chance=float(np.mean(chances)) if chances else None,
    )


def as_text(report: ContrastReport) -> str:
    """Lays the figures out in columns."""
    return _laid_out(report, aligned, "{}")


def as_markdown(report: ContrastReport) -> str:
    """Lays the figures out as tables of Markdown."""
    return _laid_out(report, markdown, "### {}")


def _laid_out(report: ContrastReport, table: Callable[[Sequence[Sequence[str]]], str], heading: str) -> str:
    columns = ["", "accuracy", "95 % interval", "chance", "items", "wrong", "ties", "NaN"]
    parts = [table([columns, _row("all", report.overall)])]
    for name, values in report.groups.items():
        rows = [_row(str(value), figures) for value, figures in values.items()]
        parts += [heading.format(f"By {name}"), table([columns, *rows])]
    parts.append("; ".join(f"{name}: {value}" for name, value in report.about.items()))
    return "\n\n".join(parts)


def _row(name: str, figures: Figures) -> List[str]:
    interval = None if figures.interval is None else (100 * figures.interval[0], 100 * figures.interval[1])
    chance = "-" if figures.chance is None else f"{100 * figures.chance:.1f} %"
    wrong = [str(figures.counts[outcome]) for outcome in ("wrong", "tie", "nan")]
    accuracy = [f"{100 * figures.accuracy:.1f} %", interval_text(interval, "{:.1f}")]
    return [name, *accuracy, chance, str(figures.items), *wrong]

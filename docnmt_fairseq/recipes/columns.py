"""Columns of a recipe's tables: one score each, over the seeds of a model."""

from dataclasses import dataclass
from statistics import mean, stdev
from typing import Callable, Iterable, List, Optional, Sequence

from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.recipes.scoring import Scores

NOTHING = "–"


@dataclass(frozen=True)
class Column:
    """A score: what it is called, and its value in the scores of one run, None where there is none."""

    title: str
    value: Callable[[Scores], Optional[float]]
    decimals: int = 2

    def cell(self, runs: Iterable[Scores]) -> str:
        """Over the seeds of a model: the mean, with the standard deviation if there are several."""
        values = [value for value in map(self.value, runs) if value is not None]
        if not values:
            return NOTHING
        spread = f" ± {stdev(values):.{self.decimals}f}" if len(values) > 1 else ""
        return f"{mean(values):.{self.decimals}f}{spread}"


def score_column(name: str, title: str) -> Column:
    """The column of a score that every recipe has.

    Args:
        name: of the score.
        title: what it is called.
    """
    return Column(title, lambda run: run.get(name))


def metric_columns(metrics: Sequence[str]) -> List[Column]:
    """The columns of further metrics, by name."""
    return [
        Column(METRICS[name].title + "↓" * METRICS[name].lower_is_better, _of_metric(name), METRICS[name].decimals)
        for name in metrics
    ]


def _of_metric(name: str) -> Callable[[Scores], Optional[float]]:
    return lambda run: run.get("metrics", {}).get(name, {}).get("score")

"""Metrics of ``docnmt score`` that a recipe computes beside BLEU and chrF, and what each is told."""

from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, MetricOptions

ALWAYS = ("bleu", "chrf")


@dataclass(frozen=True)
class FurtherMetrics:
    """What is scored.

    Attributes:
        metrics: names of ``METRICS``.
        options: of these metrics by name, as in ``docnmt score``: one value for all test sets, or values by test set,
            where one that is not named has the default. A file is one of the data set's.
    """

    metrics: List[str] = field(default_factory=list)
    options: Dict[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> List[str]:
        """The names of all files that metrics read."""
        known = _options_of(self.metrics)
        given = [value for name, value in self.options.items() if _is_file(known[name])]
        return [file for value in given for file in (value.values() if isinstance(value, Mapping) else [value])]

    def files_of_lines(self, test_set: str) -> Dict[str, str]:
        """The files whose rows count lines of a test set, by option."""
        known = _options_of(self.metrics)
        counting = {name: self._value(name, test_set) for name in self.options if known[name].metadata.get("by_line")}
        return {name: value for name, value in counting.items() if value is not None}

    def told(self, metric: str, test_set: str, paths: Mapping[str, Path]) -> MetricOptions:
        """What a metric is told of a test set.

        Args:
            metric: one of ``metrics``.
            test_set: its name.
            paths: where files are, by name.

        Raises:
            InputError: a value that is not allowed.
        """
        told = {}
        for known in fields(METRICS[metric].Options):
            value = self._value(known.name, test_set)
            if value is not None:
                told[known.name] = str(paths.get(value, value)) if _is_file(known) else value
        return METRICS[metric].Options(**told)

    def check(self, test_sets: Collection[str], where: str) -> None:
        """Refuses values for test sets that there are not, and values that are not allowed.

        Args:
            test_sets: their names.
            where: the file and the key, for messages.

        Raises:
            InputError: names the option.
        """
        for name, value in self.options.items():
            unknown = [one for one in value if one not in test_sets] if isinstance(value, Mapping) else []
            if unknown:
                message = f"no test set {', '.join(map(str, unknown))}; there are {', '.join(test_sets)}"
                raise InputError(f"{where}: {name}: {message}")
        for metric in self.metrics:
            for test_set in test_sets:
                try:
                    self.told(metric, test_set, {})
                except (InputError, TypeError) as error:
                    raise InputError(f"{where}: {metric}: {error}") from error

    def _value(self, option: str, test_set: str) -> Optional[Any]:
        value = self.options.get(option)
        return value.get(test_set) if isinstance(value, Mapping) else value


def further_metrics(values: Any, where: str) -> FurtherMetrics:
    """The metrics of the key ``scores``: ``metrics``, and options by name.

    Raises:
        InputError: unknown metrics, or options that none of them has; names the key.
    """
    names = values.get("metrics") if isinstance(values, Mapping) else None
    if not isinstance(names, list) or not names:
        raise InputError(f"{where}: metrics: give a list of {', '.join(_choices())}; and their options by name")
    wrong = [str(name) for name in names if name not in _choices()]
    if wrong:
        always = f" ({' and '.join(ALWAYS)} are scored anyway)" if {*wrong} & {*ALWAYS} else ""
        raise InputError(f"{where}: metrics: {', '.join(wrong)}: give some of {', '.join(_choices())}{always}")
    options = {name: value for name, value in values.items() if name != "metrics"}
    known = _options_of(names)
    unknown = [str(name) for name in options if name not in known]
    if unknown:
        there = f"there are {', '.join(known)}" if known else "they have none"
        raise InputError(f"{where}: {', '.join(unknown)}: no option of {', '.join(names)}; {there}")
    return FurtherMetrics(list(dict.fromkeys(names)), options)


def _choices() -> List[str]:
    return [name for name in METRICS.names() if name not in ALWAYS]


def _options_of(metrics: List[str]) -> Dict[str, "Field[Any]"]:
    return {known.name: known for name in metrics for known in fields(METRICS[name].Options)}


def _is_file(known: "Field[Any]") -> bool:
    return known.metadata.get("metavar") == "FILE"

"""A report of scores as text or Markdown."""

from typing import Callable, List, Sequence

from docnmt_fairseq.evaluation.score_report import Column, ScoreReport
from docnmt_fairseq.evaluation.significance import TESTS, Outcome
from docnmt_fairseq.evaluation.tables import aligned, markdown


def as_text(report: ScoreReport) -> str:
    """Lays the report out for a terminal."""
    lines = [f"{name:{_width(report)}}  {signature}" for name, signature in _signatures(report)]
    return _laid_out(report, aligned, str, lines)


def as_markdown(report: ScoreReport) -> str:
    """Lays the report out as Markdown."""
    lines = [f"- {name}: `{signature}`" for name, signature in _signatures(report)]
    return _laid_out(report, markdown, "**{}**".format, lines)


def _laid_out(
    report: ScoreReport,
    table: Callable[[Sequence[Sequence[str]]], str],
    title: Callable[[str], str],
    signatures: List[str],
) -> str:
    parts = [_about(report), table(_scores(report))]
    for test in report.columns[0].comparisons:
        how = TESTS[test].title.format(report.columns[0].comparisons[test].samples)
        parts += [title(f"{how}; against {report.systems[0]}"), table(_comparisons(report, test))]
    return "\n\n".join([*parts, "\n".join(signatures)])


def _about(report: ScoreReport) -> str:
    references = f"{len(report.references)} reference{'s' if len(report.references) > 1 else ''}"
    empty = ", ".join(f"{count:,} of {name}" for name, count in report.empty.items() if count)
    counts = f"{report.documents:,} documents, {report.sentences:,} sentences, {references}"
    return f"{counts}; empty translations: {empty}" if empty else counts


def _scores(report: ScoreReport) -> List[List[str]]:
    rows = [["system", *map(_heading, report.columns)]]
    for name in report.systems:
        rows.append([name, *(f"{column.scores[name]:.{column.decimals}f}" for column in report.columns)])
    return rows


def _comparisons(report: ScoreReport, test: str) -> List[List[str]]:
    rows = [["metric", "system", "score", "difference", "p"]]
    for column in report.columns:
        for name in report.systems:
            outcome = column.comparisons[test].outcomes[name]
            rows.append([_heading(column), name, *_cells(outcome, column.decimals)])
    return rows


def _cells(outcome: Outcome, decimals: int) -> List[str]:
    """Score ± half its interval, difference [its interval], and p; the last two for all but the baseline."""
    score = f"{outcome.score:.{decimals}f}"
    if outcome.margin is not None:
        score += f" ± {outcome.margin:.{decimals}f}"
    if outcome.difference is None:
        return [score, "", ""]
    difference = f"{outcome.difference:+.{decimals}f}"
    if outcome.difference_interval:
        low, high = outcome.difference_interval
        difference += f" [{low:+.{decimals}f}, {high:+.{decimals}f}]"
    return [score, difference, f"{outcome.p_value:.4f}"]


def _heading(column: Column) -> str:
    return f"{column.name}↓" if column.lower_is_better else column.name


def _signatures(report: ScoreReport) -> List[List[str]]:
    found = []
    for column in report.columns:
        found.append([column.name, column.signature])
        found += [[f"{column.name}, {test}", one.signature] for test, one in column.comparisons.items()]
    return found


def _width(report: ScoreReport) -> int:
    return max(len(name) for name, _ in _signatures(report))

"""Runs a published table: our figures beside the paper's, in ``NAME.md`` and ``NAME.json`` of the output."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.recipes.columns import NOTHING
from docnmt_fairseq.recipes.result_files import read_json, write_json
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Request
from docnmt_fairseq.reproduce.published import PublishedTable

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Ours:
    """Our figure of a cell.

    Attributes:
        values: one a seed; none: it was not run.
        p_values: of the difference from the table's baseline, one a seed; none: it was not tested.
    """

    values: List[float] = field(default_factory=list)
    p_values: List[float] = field(default_factory=list)


Found = Dict[Tuple[str, str], Ours]  # by row and column


def reproduce(table: PublishedTable, request: Request, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> str:
    """Runs the cells that are asked for, and returns the whole table, which is also written.

    Figures of other cells that were found before in the same way stay in it.

    Args:
        table: which.
        request: how.
        rows, columns: of which cells, by title; none named: of all.

    Raises:
        InputError: something is missing or wrong; the output holds the table of another kind of run.
    """
    cut = table.only(rows, columns)
    _check(cut, request)
    about = _about(request)
    path = request.output / f"{table.name}.json"
    found = _found_before(path, about)
    request.output.mkdir(parents=True, exist_ok=True)
    figures = FIGURES[table.figures](cut.cells, request)
    values = figures.values()
    p_values = {} if table.baseline is None else figures.p_values(table.baseline)
    now = {(cell.row, cell.column): Ours(several, p_values.get(cell, [])) for cell, several in values.items()}
    found = _with_what_is_found_now(found, now, table.baseline)
    text = table_text(table, request, found)
    cells = [_record(cell, found.get((cell.row, cell.column), Ours())) for cell in table.cells]
    atomic_write_bytes(path.with_suffix(".md"), (text + "\n").encode())
    write_json(path, {"table": table.name, "about": about, "cells": cells})
    return text


def table_text(table: PublishedTable, request: Request, found: Mapping[Tuple[str, str], Ours]) -> str:
    """The table as Markdown: of every column the paper's figure, ours, and the difference; below, what differs.

    Args:
        table: which.
        request: how ours were found.
        found: ours, by row and column.
    """
    mark = "*" if request.changes or request.smoke else ""
    header = [""]
    for column in table.columns:
        header += [f"{column['title']}: published", f"ours{mark}", "difference"]
    rows = []
    for row in table.rows:
        line = [str(row["title"])]
        for column, published in zip(table.columns, row["published"]):
            place = row["title"], column["title"]
            line += _three(published, found.get(place, Ours()), table.decimals)
        rows.append(line)
    lines = [f"# {table.title}", "", f"{table.source}. How it was read: {table.page}.", ""]
    if request.smoke:
        lines += ["**A smoke run: a few made-up documents, tiny models. The figures mean nothing.**", ""]
    seeds = ", ".join(map(str, request.seeds))
    lines += [markdown([header, *rows]), "", f"Seeds: {seeds}; several: mean ± standard deviation.", ""]
    if table.baseline is not None:
        test = "the sign test of Collins et al. (2005) over sentences"
        lines += [f"†: differs from {table.baseline}, p < {SIGNIFICANT} in every seed, by {test}.", ""]
    if request.changes:
        lines += [f"\\* Not the published models: changed by `{' '.join(request.changes)}`.", ""]
    lines += ["Not as in the paper:", "", *(f"- {one}" for one in table.all_deviations or ["nothing that we know of."])]
    return "\n".join(lines)


def _check(cut: PublishedTable, request: Request) -> None:
    """Refuses what a run of these cells would not heed, and where there are none."""
    heeds = FIGURES[cut.figures].heeds
    idle = [flag for flag in request.training_options if flag not in heeds]
    if idle:
        raise InputError(f"{', '.join(idle)}: {cut.name} has none of these to change; leave {' and '.join(idle)} out")
    if not cut.cells:
        raise InputError(f"--rows, --columns: {cut.name} has no cell of ours there")


def _about(request: Request) -> Dict[str, Any]:
    """What figures depend on that stand in one table."""
    return {"seeds": list(request.seeds), "changes": request.changes, "smoke": request.smoke}


def _found_before(path: Path, about: Mapping[str, Any]) -> Found:
    if not path.exists():
        return {}
    before, found = read_found(path)
    if before != about:
        raise InputError(
            f"{path}: holds figures of other options ({json.dumps(before)}); give another --output, or remove it"
        )
    return found


def read_found(path: Path) -> Tuple[Dict[str, Any], Found]:
    """What figures in a file of results were found with, and those that there are.

    Raises:
        InputError: the file is damaged.
    """
    try:
        content = read_json(path)
        cells = [cell for cell in content["cells"] if cell["ours"]]
        found = {(cell["row"], cell["column"]): Ours(cell["ours"], cell["p_values"]) for cell in cells}
        return dict(content["about"]), found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged ({error}); remove it, the table is then run again") from error


def _with_what_is_found_now(before: Found, now: Found, baseline: Optional[str]) -> Found:
    """All figures; where none is tested now, p-values stay if neither the figure changes nor its column's baseline."""
    changed = {place for place, ours in now.items() if before.get(place, Ours()).values != ours.values}
    found = {}
    for (row, column), ours in {**before, **now}.items():
        stale = changed & {(row, column), (baseline, column)}
        kept = [] if stale else before.get((row, column), Ours()).p_values
        tested = now.get((row, column), Ours()).p_values
        found[row, column] = Ours(ours.values, tested or kept)
    return found


def _record(cell: Cell, ours: Ours) -> Dict[str, Any]:
    place = {"row": cell.row, "column": cell.column, "published": cell.published}
    return {**place, "ours": ours.values, "p_values": ours.p_values}


def _three(published: Optional[float], ours: Ours, decimals: int) -> List[str]:
    """The paper's figure, ours, and the difference."""
    figure = mean(ours.values) if ours.values else None
    spreads = len(ours.values) > 1 and all(map(math.isfinite, ours.values))  # of a run that diverged there is none
    spread = f" ± {stdev(ours.values):,.{decimals}f}" if spreads else ""
    spread += "†" if ours.p_values and max(ours.p_values) < SIGNIFICANT else ""
    return [
        NOTHING if published is None else f"{published:,.{decimals}f}",
        NOTHING if figure is None else f"{figure:,.{decimals}f}{spread}",
        NOTHING if figure is None or published is None else f"{figure - published:+,.{decimals}f}",
    ]

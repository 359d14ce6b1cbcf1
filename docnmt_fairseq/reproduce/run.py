"""Runs a published table: our figures next to the published ones, in ``NAME.md`` and ``NAME.json`` of the output."""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.files import folder_lock, read_json, write_bytes, write_json
from docnmt_fairseq.recipes.recipe import Options
from docnmt_fairseq.recipes.table import NOTHING
from docnmt_fairseq.reproduce.base import FIGURES
from docnmt_fairseq.reproduce.published import PublishedTable

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Ours:
    """Our figure of a cell.

    Attributes:
        values: one per seed; empty: not run.
        p_values: p-values of the difference from the baseline of the table, one per seed; empty: not tested.
        origin: when and from which data it was computed.
    """

    values: List[float] = field(default_factory=list)
    p_values: List[float] = field(default_factory=list)
    origin: str = ""


Found = Dict[Tuple[str, str], Ours]  # by row and column


def reproduce(table: PublishedTable, request: Options, rows: Sequence[str] = (), columns: Sequence[str] = ()) -> str:
    """Computes the requested cells, writes the table and returns it; earlier figures of other cells are kept.

    Args:
        table: table to run.
        request: options.
        rows, columns: titles of rows and columns to compute; empty: all.
    """
    part = table.only(rows, columns)
    kind = FIGURES[table.figures]
    settings = {"seeds": list(request.seeds), "changes": request.changes, "smoke": request.smoke}
    path = request.output / f"{table.name}.json"
    with folder_lock(request.output):
        before = read_found(path)
        if before is not None and before[0] != settings:
            raise InputError(f"{path}: has figures of other options ({json.dumps(before[0])}); change --output")
        found = before[1] if before else {}
        figures = kind(part.cells, request)
        for cell, values in figures.values().items():
            place = cell.row, cell.column
            if place not in found or found[place].values != values:  # otherwise computed earlier
                found[place] = Ours(values, origin=figures.origin(cell))
        figures = kind([cell for cell in table.cells if (cell.row, cell.column) in found], request)
        if table.baseline is not None:
            for cell, p_values in figures.p_values(table.baseline).items():
                found[cell.row, cell.column] = replace(found[cell.row, cell.column], p_values=p_values)
        text = table_text(table, request, found, [picture.name for picture in figures.draw(table.name)])
        cells = []
        for cell in table.cells:
            ours = found.get((cell.row, cell.column), Ours())
            record = {"row": cell.row, "column": cell.column, "published": cell.published}
            cells.append({**record, "ours": ours.values, "p_values": ours.p_values, "origin": ours.origin})
        write_bytes(path.with_suffix(".md"), (text + "\n").encode())
        write_json(path, {"table": table.name, "about": settings, "cells": cells}, indent=1)
    return text


def read_found(path: Path) -> Optional[Tuple[Dict[str, Any], Found]]:
    """Returns the settings and figures in a result file; None if it does not exist."""
    content = read_json(path)
    if content is None:
        return None
    return content["about"], {
        (cell["row"], cell["column"]): Ours(cell["ours"], cell["p_values"], cell.get("origin", ""))
        for cell in content["cells"]
        if cell["ours"]
    }


def table_text(
    table: PublishedTable, request: Options, found: Mapping[Tuple[str, str], Ours], pictures: Sequence[str] = ()
) -> str:
    """Returns the table as Markdown: published figure, ours and the difference per column, origins and deviations.

    Args:
        table: table.
        request: options of our figures.
        found: our figures, by row and column.
        pictures: names of pictures next to the table.
    """
    mark = "*" if request.changes or request.smoke else ""
    header = [""]
    for column in table.columns:
        header += [f"{column['title']}: published", f"ours{mark}", "difference"]
    rows = []
    for row in table.rows:
        line = [str(row["title"])]
        for column, published in zip(table.columns, row["published"]):
            line += _figures(published, found.get((row["title"], column["title"]), Ours()), table.decimals)
        rows.append(line)
    lines = [f"# {table.title}", "", f"{table.source}. Interpretation: {table.page}.", ""]
    if request.smoke:
        lines += ["**Smoke run: synthetic data and tiny models. The figures are meaningless.**", ""]
    seeds = ", ".join(map(str, request.seeds))
    lines += [markdown([header, *rows]), "", f"Seeds: {seeds}; several: mean ± standard deviation.", ""]
    if table.baseline is not None:
        test = "sign test of Collins et al. (2005) over sentences"
        lines += [f"†: differs from {table.baseline}, p < {SIGNIFICANT} for every seed, {test}.", ""]
    if mark:
        changes = f"changed by `{' '.join(request.changes)}`" if request.changes else "tiny models of a smoke run"
        lines += [f"\\* Not the published models: {changes}.", ""]
    lines += [*(f"![{name}]({name})" for name in pictures), ""] if pictures else []
    lines += ["Our figures:", "", *(f"- {row}: {state}" for row, state in row_states(table, found)), ""]
    return "\n".join([*lines, "Differences from the paper:", "", *(f"- {one}" for one in table.all_deviations)])


def row_states(table: PublishedTable, found: Mapping[Tuple[str, str], Ours]) -> Iterator[Tuple[str, str]]:
    """Yields every row with figures of ours, and when and from which data they were computed, by column."""
    for row in dict.fromkeys(cell.row for cell in table.cells):
        columns: Dict[str, List[str]] = {}
        for cell in (cell for cell in table.cells if cell.row == row):
            ours = found.get((row, cell.column))
            origin = "not run" if ours is None else ours.origin or "run earlier"
            columns.setdefault(origin, []).append(cell.column)
        alone = len(columns) == 1
        yield row, "; ".join(origin if alone else f"{', '.join(of)}: {origin}" for origin, of in columns.items())


def _figures(published: Optional[float], ours: Ours, decimals: int) -> List[str]:
    """Returns published figure, ours, and the difference."""
    figure = mean(ours.values) if ours.values else None
    finite = len(ours.values) > 1 and all(map(math.isfinite, ours.values))
    spread = f" ± {stdev(ours.values):,.{decimals}f}" if finite else ""
    spread += "†" if ours.p_values and max(ours.p_values) < SIGNIFICANT else ""
    return [
        NOTHING if published is None else f"{published:,.{decimals}f}",
        NOTHING if figure is None else f"{figure:,.{decimals}f}{spread}",
        NOTHING if figure is None or published is None else f"{figure - published:+,.{decimals}f}",
    ]

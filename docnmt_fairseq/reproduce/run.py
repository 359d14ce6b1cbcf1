"""Runs a published table: our figures next to the published ones, in ``NAME.md`` and ``NAME.json`` of the output."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

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
    """

    values: List[float] = field(default_factory=list)
    p_values: List[float] = field(default_factory=list)


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
    given = {"--size": request.size, "--updates": request.updates, "--train-options": request.train_options}
    if unused := [option for option, value in given.items() if value and option not in kind.uses]:
        raise InputError(f"{', '.join(unused)}: not for {table.name}, whose models do not depend on it; leave it out")
    if not part.cells:
        raise InputError(f"--rows, --columns: {table.name} has no figures of ours in these cells")
    settings = {"seeds": list(request.seeds), "changes": request.changes, "smoke": request.smoke}
    path = request.output / f"{table.name}.json"
    with folder_lock(request.output):
        before = read_found(path)
        if before is not None and before[0] != settings:
            raise InputError(f"{path}: has figures of other options ({json.dumps(before[0])}); change --output")
        now = {(cell.row, cell.column): Ours(values) for cell, values in kind(part.cells, request).values().items()}
        found = {**(before[1] if before else {}), **now}
        if table.baseline is not None:
            run = [cell for cell in table.cells if (cell.row, cell.column) in found]
            for cell, p_values in kind(run, request).p_values(table.baseline).items():
                found[cell.row, cell.column] = Ours(found[cell.row, cell.column].values, p_values)
        text = table_text(table, request, found)
        cells = []
        for cell in table.cells:
            ours = found.get((cell.row, cell.column), Ours())
            record = {"row": cell.row, "column": cell.column, "published": cell.published}
            cells.append({**record, "ours": ours.values, "p_values": ours.p_values})
        write_bytes(path.with_suffix(".md"), (text + "\n").encode())
        write_json(path, {"table": table.name, "about": settings, "cells": cells}, indent=1)
    return text


def read_found(path: Path) -> Optional[Tuple[Dict[str, Any], Found]]:
    """Returns the settings and figures in a result file; None if it does not exist."""
    content = read_json(path)
    if content is None:
        return None
    cells = [cell for cell in content["cells"] if cell["ours"]]
    return content["about"], {(cell["row"], cell["column"]): Ours(cell["ours"], cell["p_values"]) for cell in cells}


def table_text(table: PublishedTable, request: Options, found: Mapping[Tuple[str, str], Ours]) -> str:
    """Returns the table as Markdown: published figure, ours and the difference per column, and the deviations.

    Args:
        table: table.
        request: options of our figures.
        found: our figures, by row and column.
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
    if request.changes:
        lines += [f"\\* Not the published models: changed by `{' '.join(request.changes)}`.", ""]
    return "\n".join([*lines, "Differences from the paper:", "", *(f"- {one}" for one in table.all_deviations)])


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

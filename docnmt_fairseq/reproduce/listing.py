"""List of ``docnmt reproduce``: tables with their requirements, estimated hours and state."""

import textwrap
from typing import List

from docnmt_fairseq.evaluation.tables import aligned
from docnmt_fairseq.recipes.recipe import Options
from docnmt_fairseq.recipes.table import NOTHING
from docnmt_fairseq.reproduce.base import FIGURES
from docnmt_fairseq.reproduce.published import PublishedTable, read_table, table_names
from docnmt_fairseq.reproduce.run import read_found, row_states

WIDTH, INDENT = 79, "    "
ELSEWHERE = {  # tables and figures of the papers that are not run by this command
    "Jiang et al., Table 5": "no figures: docnmt score --example-lines 4123, with the models of memory-table-2",
}
HOURS = (
    "GPU hours: of one NVIDIA H100 in bfloat16, 160,000 target tokens per second, measured at base width with "
    "conditional attention (benchmarks/results/gpu/gpu.md).",
    "CPU hours: of one core, from measured speeds; trainings are shorter on a GPU.",
)


def table_list(request: Options) -> str:
    """Returns all tables as text: hours and state of each, and what it shows and needs.

    Args:
        request: options of a run; its output may have results.
    """
    tables = [read_table(name) for name in table_names()]
    rows = [[table.name, _hours(table, request), _state(table, request)] for table in tables]
    header, *heads = aligned([["table", "hours", "run"], *rows]).splitlines()
    lines = [header]
    for head, table in zip(heads, tables):
        lines += [head, *_wrapped(f"{table.title} ({table.source})"), *_wrapped(f"Needs: {table.needs}")]
        lines += _wrapped(f"Results in this repository: {table.results}") if table.results else []
        if found := read_found(request.output / f"{table.name}.json"):
            lines += [line for row, state in row_states(table, found[1]) for line in _wrapped(f"{row}: {state}")]
    lines += ["", "Not run by this command:", ""]
    lines += [line for what, instead in ELSEWHERE.items() for line in _wrapped(f"{what}: {instead}")]
    notes = [*HOURS, f"{NOTHING}: minutes.", f"Run: cells with figures in {request.output}."]
    return "\n".join([*lines, "", *(line for note in notes for line in textwrap.wrap(note, WIDTH))])


def _wrapped(text: str) -> List[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=2 * INDENT, break_on_hyphens=False)


def _hours(table: PublishedTable, request: Options) -> str:
    kind = FIGURES[table.figures]
    hours = kind(table.cells, request).hours()
    return NOTHING if hours is None else f"{max(hours, 1):,.0f} {kind.processor}"


def _state(table: PublishedTable, request: Options) -> str:
    """Number of cells with figures, and whether options changed the models."""
    found = read_found(request.output / f"{table.name}.json")
    if found is None:
        return "no"
    settings, figures = found
    done = sum((cell.row, cell.column) in figures for cell in table.cells)
    state = "yes" if done == len(table.cells) else f"{done} of {len(table.cells)} cells"
    marks = [mark for mark, key in (("changed", "changes"), ("smoke", "smoke")) if settings.get(key)]
    return ", ".join([state, *marks])

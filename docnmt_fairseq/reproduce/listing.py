"""The list of ``docnmt reproduce``: tables with their hours and what was run of them, as wide as a terminal."""

import textwrap
from dataclasses import dataclass
from typing import List

from docnmt_fairseq.evaluation.tables import aligned
from docnmt_fairseq.recipes.columns import NOTHING
from docnmt_fairseq.reproduce.base import FIGURES, Request
from docnmt_fairseq.reproduce.hours import SOURCES
from docnmt_fairseq.reproduce.published import PublishedTable, read_table, table_names
from docnmt_fairseq.reproduce.run import read_found

WIDTH, INDENT = 79, "    "


@dataclass(frozen=True)
class Elsewhere:
    """A table or figure of the papers that is no published table.

    Attributes:
        what: which.
        instead: what makes it, or why nothing does.
    """

    what: str
    instead: str


ELSEWHERE = (
    Elsewhere(
        "Jiang et al., Table 5", "no figures: docnmt score --example-lines 4123, with the models of memory-table-2"
    ),
    Elsewhere("Libovický and Helcl, Fig. 1", "learning curves, in the train.log of each model of combination-table-1"),
    Elsewhere("Libovický and Helcl, Fig. 2", "one sentence: docnmt report, of a model of combination-table-1"),
    Elsewhere("Zeng, Fig. 7 and 8", "curves: docnmt embed fit --iterations N, then docnmt embed similarity"),
    Elsewhere("Zeng, Fig. 12 and 14", "curves of a million updates on 100 machines; the paper prints no numbers"),
    Elsewhere("Zeng, Fig. 15", "pictures: python -m benchmarks.experiments.context_aware_sanity"),
)


def table_list(request: Request) -> str:
    """All tables as text: hours and whether each was run, below each what it shows and needs.

    Args:
        request: where results would be, and what a run would be asked for.
    """
    tables = [read_table(name) for name in table_names()]
    rows = [[table.name, _hours(table, request), _state(table, request)] for table in tables]
    header, *heads = aligned([["table", "hours", "run"], *rows]).splitlines()
    lines = [header]
    for head, table in zip(heads, tables):
        lines += [head, *_wrapped(f"{table.title} ({table.source})"), *_wrapped(f"Needs: {table.needs}")]
        lines += _wrapped(f"Run for this repository: {table.results}") if table.results else []
    lines += ["", "Not run by this command:", ""]
    lines += [line for one in ELSEWHERE for line in _wrapped(f"{one.what}: {one.instead}")]
    below = [*SOURCES, f"{NOTHING}: minutes.", f"Run: cells with figures in {request.output}."]
    return "\n".join([*lines, "", *(line for one in below for line in textwrap.wrap(one, WIDTH))])


def _wrapped(text: str) -> List[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=2 * INDENT, break_on_hyphens=False)


def _hours(table: PublishedTable, request: Request) -> str:
    kind = FIGURES[table.figures]
    hours = kind(table.cells, request).hours()
    return NOTHING if hours is None else f"{max(hours, 1):,.0f} {kind.processor}"


def _state(table: PublishedTable, request: Request) -> str:
    """How many cells have figures, and what makes them others than the paper's."""
    path = request.output / f"{table.name}.json"
    if not path.exists():
        return "no"
    about, found = read_found(path)
    done = sum((cell.row, cell.column) in found for cell in table.cells)
    state = "yes" if done == len(table.cells) else f"{done} of {len(table.cells)} cells"
    marks = [mark for mark, marked in (("changed", about.get("changes")), ("smoke", about.get("smoke"))) if marked]
    return ", ".join([state, *marks])

"""Published tables: one YAML file each."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import typed
from docnmt_fairseq.reproduce import figures  # noqa: F401  (registers all kinds)
from docnmt_fairseq.reproduce.base import Cell

TABLES = Path(__file__).parent / "tables"
COLUMN_KEYS, ROW_KEYS = ("title",), ("title", "published", "columns")  # others are settings of cells


@dataclass
class PublishedTable:
    """Table or figure of a paper.

    Attributes:
        name: name for ``docnmt reproduce``.
        title: content.
        source: paper and number of the table.
        page: documentation page that explains how the paper was interpreted.
        needs: data and packages needed for a run.
        columns: ``title`` and settings of each.
        rows: ``title``, ``published`` (one figure per column, null if there is none) and settings of each; optionally
            ``columns``, titles of those in which the row has cells.
        figures: kind of experiment, in ``FIGURES``.
        decimals: decimals of the figures.
        baseline: row that others are tested against; None: no tests.
        deviations: differences from the paper.
        deviations_of: tables whose deviations apply as well.
        results: file with results of such a run, relative to the root of the repository; None: there is none.
    """

    name: str
    title: str
    source: str
    page: str
    needs: str
    columns: List[Dict[str, Any]]
    rows: List[Dict[str, Any]]
    figures: str = "scores"
    decimals: int = 2
    baseline: Optional[str] = None
    deviations: List[str] = field(default_factory=list)
    deviations_of: List[str] = field(default_factory=list)
    results: Optional[str] = None

    @property
    def all_deviations(self) -> List[str]:
        """All differences from the paper."""
        return [*(one for name in self.deviations_of for one in read_table(name).all_deviations), *self.deviations]

    @property
    def cells(self) -> List[Cell]:
        """Cells that we have figures for, row by row."""
        return [
            Cell(row["title"], column["title"], published, settings)
            for row in self.rows
            for column, published in zip(self.columns, row["published"])
            if column["title"] in row.get("columns", [column["title"]])
            if (settings := _settings(column, row)) is not None
        ]

    def only(self, rows: Sequence[str], columns: Sequence[str]) -> "PublishedTable":
        """Returns the table reduced to rows and columns, given by title; an empty list stands for all."""
        kept = {}
        for option, wanted, known in (("--rows", rows, self.rows), ("--columns", columns, self.columns)):
            titles = [one["title"] for one in known]
            if unknown := [title for title in wanted if title not in titles]:
                raise InputError(f"{option} {', '.join(unknown)}: not in {self.name}; known: {', '.join(titles)}")
            kept[option] = [number for number, title in enumerate(titles) if title in wanted or not wanted]
        places = kept["--columns"]
        cut = [
            {**self.rows[number], "published": [self.rows[number]["published"][place] for place in places]}
            for number in kept["--rows"]
        ]
        return replace(self, columns=[self.columns[place] for place in places], rows=cut)


def _settings(column: Mapping[str, Any], row: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Returns the settings of a cell; None if a setting is given by recipe, but not for that of the column."""
    settings: Dict[str, Any] = {}
    for part, own in ((column, COLUMN_KEYS), (row, ROW_KEYS)):
        for key, value in part.items():
            if key in own:
                continue
            if isinstance(value, Mapping):
                if column.get("recipe") not in value:
                    return None
                value = value[column["recipe"]]
            settings[key] = [*settings.get(key, []), *value] if isinstance(value, list) else value
    return settings


def table_names() -> List[str]:
    """Returns the names of all published tables."""
    return sorted(path.stem for path in TABLES.glob("*.yaml"))


def read_table(name: str) -> PublishedTable:
    """Returns a published table."""
    if name not in table_names():
        raise InputError(f"{name}: unknown table; known: {', '.join(table_names())}")
    return read_table_file(TABLES / f"{name}.yaml")


def read_table_file(path: Path) -> PublishedTable:
    """Reads a table from a file."""
    import yaml

    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return typed(PublishedTable, {"name": path.stem, **values})

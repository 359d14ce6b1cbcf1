"""Published tables: one YAML file each, read, checked and cut to what is asked for."""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.reproduce import figures  # noqa: F401  (registers all kinds)
from docnmt_fairseq.reproduce.base import FIGURES, Cell

TABLES = Path(__file__).parent / "tables"
OF_COLUMNS, OF_ROWS = ("title", "published_only"), ("title", "published", "columns")  # others are settings of cells


@dataclass(frozen=True)
class PublishedTable:
    """One table or figure of a paper.

    Attributes:
        name: by which ``docnmt reproduce`` knows it.
        title: what it shows.
        source: which paper, which table.
        page: of the documentation, with what was read how.
        needs: the data and packages that a run needs.
        columns: each a ``title``, and settings; ``published_only``: its cells are the paper's alone.
        rows: each a ``title``, ``published`` (a figure a column, null where there is none), and settings; perhaps
            ``columns``, the titles of those in which it has cells.
        figures: where ours come from, of ``FIGURES``.
        decimals: of the figures.
        baseline: the row that others are tested against, None: no tests.
        deviations: what is not as in the paper.
        deviations_of: tables whose deviations are also this one's.
        results: where the repository has figures of such a run, a file below its root; None: it has none.
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
        """All that is not as in the paper."""
        of_others = [one for name in self.deviations_of for one in read_table(name).all_deviations]
        return [*of_others, *self.deviations]

    @property
    def cells(self) -> List[Cell]:
        """The cells, row by row; one that row, column or settings rule out is none."""
        return [
            Cell(row["title"], column["title"], published, settings)
            for row in self.rows
            for column, published in zip(self.columns, row["published"])
            if column["title"] in row.get("columns", [column["title"]]) and not column.get("published_only")
            if (settings := _settings(column, row)) is not None
        ]

    def only(self, rows: Sequence[str], columns: Sequence[str]) -> "PublishedTable":
        """The table of some rows and columns, by title; none named: of all.

        Raises:
            InputError: there is no such row or column.
        """
        kept = {}
        for option, wanted, known in (("--rows", rows, self.rows), ("--columns", columns, self.columns)):
            titles = [one["title"] for one in known]
            unknown = [title for title in wanted if title not in titles]
            if unknown:
                raise InputError(f"{option} {', '.join(unknown)}: not in {self.name}; there are {', '.join(titles)}")
            kept[option] = [number for number, title in enumerate(titles) if title in wanted or not wanted]
        places = kept["--columns"]
        of_rows = [self.rows[number] for number in kept["--rows"]]
        cut = [{**row, "published": [row["published"][place] for place in places]} for row in of_rows]
        return replace(self, columns=[self.columns[place] for place in places], rows=cut)


def _settings(column: Mapping[str, Any], row: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """The settings of a cell, None if there is no cell: one of them is by recipe, but not for the column's."""
    settings: Dict[str, Any] = {}
    for part, own in ((column, OF_COLUMNS), (row, OF_ROWS)):
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
    """The names of all published tables."""
    return sorted(path.stem for path in TABLES.glob("*.yaml"))


def read_table(name: str) -> PublishedTable:
    """A published table.

    Raises:
        InputError: there is none of that name.
    """
    if name not in table_names():
        raise InputError(f"{name}: no such table; there are {', '.join(table_names())}")
    return read_table_file(TABLES / f"{name}.yaml")


def read_table_file(path: Path) -> PublishedTable:
    """The table in a file.

    Raises:
        InputError: it says something that nobody knows; names file and key.
    """
    import yaml

    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    known = {one.name for one in fields(PublishedTable)} - {"name"}
    if not isinstance(values, Mapping) or not {*values} <= known:
        unknown = sorted({*values} - known) if isinstance(values, Mapping) else values
        raise InputError(f"{path}: unknown {unknown}; there are {', '.join(sorted(known))}")
    try:
        table = PublishedTable(name=path.stem, **values)
    except TypeError as error:
        raise InputError(f"{path}: {error}") from error
    _check(path, table)
    return table


def _check(path: Path, table: PublishedTable) -> None:
    if table.figures not in FIGURES:
        raise InputError(f"{path}: figures: {table.figures}: there are {', '.join(FIGURES.names())}")
    allowed = FIGURES[table.figures].settings
    for kind, several, own in (("columns", table.columns, OF_COLUMNS), ("rows", table.rows, OF_ROWS)):
        titles = [one.get("title") for one in several]
        if None in titles or len({*titles}) < len(titles):
            raise InputError(f"{path}: {kind}: each needs a title of its own, got {titles}")
        for one in several:
            unknown = [key for key in one if key not in (*own, *allowed)]
            if unknown:
                message = f"unknown {', '.join(unknown)}; there are {', '.join(allowed)}"
                raise InputError(f"{path}: {kind}: {one['title']}: {message}")
    if table.baseline is not None and table.baseline not in [row["title"] for row in table.rows]:
        raise InputError(f"{path}: baseline: {table.baseline}: no such row")
    for row in table.rows:
        if len(row.get("published", [])) != len(table.columns):
            raise InputError(f"{path}: rows: {row['title']}: published: {len(table.columns)} figures, null for none")
        titles = [column["title"] for column in table.columns]
        unknown = [title for title in row.get("columns", []) if title not in titles]
        if unknown:
            raise InputError(f"{path}: rows: {row['title']}: columns: {', '.join(unknown)}: no such column")

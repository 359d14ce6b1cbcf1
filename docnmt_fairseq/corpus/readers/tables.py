"""Readers of tables with one sentence pair per row: tab-separated text, News-Commentary."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.document import Document, Sentence, split_at_empty_rows, split_at_names
from docnmt_fairseq.corpus.files import read_lines, unpacked_name
from docnmt_fairseq.corpus.readers.base import Omitted, Reader, ReaderOptions, register
from docnmt_fairseq.corpus.text import is_blank
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option

TABLE = ".tsv"
PAIR = re.compile(r"([A-Za-z_]+)-([A-Za-z_]+)\.tsv$")


class Columns(NamedTuple):
    """Columns of a table, from 0: of each side, and of the document name if there is one."""

    texts: Tuple[int, ...]
    document: Optional[int]


@dataclass(frozen=True)
class TsvOptions(ReaderOptions):
    """Columns of the table."""

    columns: Sequence[str] = option(
        ("1", "2"), "SOURCE TARGET [DOCUMENT], by number from 1 or by name", metavar="COLUMN"
    )
    header: bool = option(False, "the first row names the columns")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.columns, str) or len(self.columns) not in (2, 3):
            raise InputError(f"--columns {self.columns}: expected SOURCE TARGET, or SOURCE TARGET DOCUMENT")
        object.__setattr__(self, "columns", tuple(map(str, self.columns)))


@register("tsv")
class TsvReader(Reader):
    """Table with one sentence pair per row."""

    help = "tab-separated, see --columns and --header; without a document column empty rows end documents"
    files = "one file"
    Options = TsvOptions

    resolve = Reader.one_file
    options: TsvOptions

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents; empty rows are skipped if a column names the documents."""
        (path,) = paths
        rows = enumerate(read_lines(path, strip="\r\n"), start=1)
        names: List[str] = []
        if self.options.header:
            names = [name.strip() for name in next(rows, (1, ""))[1].split("\t")]
        found = [_column(path, column, names) for column in self.options.columns]
        columns = Columns(tuple(found[: self.sides]), found[2] if len(found) == 3 else None)
        yield from _read_table(path, rows, columns, self.reading.drop_incomplete, len(names))


def _column(path: Path, column: str, names: List[str]) -> int:
    if column in names:
        return names.index(column)
    if column.isdecimal() and int(column) > 0:
        return int(column) - 1
    known = f"the columns are {', '.join(names)}" if names else "give a number from 1, or --header"
    raise InputError.at(path, 1, f"no column {column} (--columns); {known}")


def _read_table(
    path: Path, rows: Iterator[Tuple[int, str]], columns: Columns, drop: bool, width: int = 0
) -> Iterator[Document]:
    """Yields the documents of numbered rows with ``width`` columns; 0: as many as the first row has."""
    files = (str(path),) * len(columns.texts)
    cells = _cells(path, rows, columns, drop, width)
    if columns.document is None:
        return split_at_empty_rows(((number, texts) for number, _, texts in cells), files)
    named = ((number, name, texts) for number, name, texts in cells if texts and any(texts))
    return split_at_names(named, files, str(path))


def _cells(
    path: Path, rows: Iterator[Tuple[int, str]], columns: Columns, drop: bool, width: int
) -> Iterator[Tuple[int, str, Optional[Sentence]]]:
    """Yields line number, document name ("" without such a column), and texts, None for an empty row."""
    needed = 1 + max(*columns.texts, -1 if columns.document is None else columns.document)
    omitted = Omitted(path, "rows", drop)
    for number, line in rows:
        if is_blank(line.strip()):
            yield number, "", None
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        width = max(width or len(cells), needed)
        if len(cells) != width:
            with omitted.catch():
                message = f"{len(cells)} columns, expected {width}; perhaps a tab in the text, see --columns"
                raise InputError.at(path, number, message)
            continue
        name = "" if columns.document is None else cells[columns.document]
        yield number, name, tuple(cells[column] for column in columns.texts)
    omitted.report()


@register("news-commentary")
class NewsCommentaryReader(Reader):
    """News-Commentary with empty lines or rows between documents."""

    help = "News-Commentary, empty lines or rows between documents; with empty sides use --on-empty drop"
    files = (
        "PREFIX, or one file per side; or one NAME.SOURCE-TARGET.tsv[.gz], its languages in the order of the columns"
    )

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the table, or the files of both sides."""
        if not any(unpacked_name(argument).endswith(TABLE) for argument in arguments):
            return self.prefix_or_files(arguments)
        (path,) = self.exactly(1, arguments)
        self._columns(path)
        return [path]

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        if unpacked_name(paths[0].name).endswith(TABLE):
            rows = enumerate(read_lines(paths[0], strip="\r\n"), start=1)
            return _read_table(paths[0], rows, self._columns(paths[0]), self.reading.drop_incomplete)
        lines = ((number, texts if any(texts) else None) for number, texts in parallel_lines(paths))
        return split_at_empty_rows(lines, tuple(str(path) for path in paths))

    def _columns(self, path: Path) -> Columns:
        """Returns the column of each side, from the languages in the file name."""
        found = PAIR.search(unpacked_name(path.name))
        languages = list(found.groups()[:2]) if found else []
        wanted = self.reading.languages
        if not set(wanted) <= set(languages):
            raise InputError(
                f"{path}: the name must contain the languages {' and '.join(wanted)}, like NAME.de-en.tsv; rename the "
                "file, or use --format tsv with --columns"
            )
        return Columns(tuple(map(languages.index, wanted)), None)

"""Tables with one document per row: JSON lines and Parquet."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.boundaries import MAX_LEVELS, boundary, levels_ended
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Omitted, Reader, ReaderOptions, register
from docnmt_fairseq.corpus.text import is_blank
from docnmt_fairseq.errors import InputError, needs_extra
from docnmt_fairseq.options import option

PARQUET_ROWS = 16  # rows converted to Python objects at a time


@dataclass(frozen=True)
class RowOptions(ReaderOptions):
    """Fields of a row that hold the sides."""

    fields: Sequence[str] = option(
        (),
        "SOURCE TARGET, fields with the sides of a document: lists of sentences, of paragraphs, of sections, ..., or "
        "text with one sentence per line; a.b is b in a, of each entry if a is a list (default: the languages)",
        nargs=2,
        metavar="FIELD",
    )


class RowReader(Reader):
    """Base class of readers of documents in rows; any number of files."""

    files = "one or more files"
    Options = RowOptions

    options: RowOptions

    @property
    def fields(self) -> List[str]:
        """Field of each side."""
        return list(self.options.fields or self.reading.languages)[: self.sides]

    def documents(self, path: Path, rows: Iterable[Tuple[int, Any]]) -> Iterator[Document]:
        """Yields the documents of numbered rows, values or lines of JSON; rows without text are skipped."""
        omitted = Omitted(path, "documents", self.reading.drop_incomplete)
        for number, row in rows:
            document = None
            with omitted.catch():
                document = self._document(path, number, _parsed(path, number, row) if isinstance(row, str) else row)
            if document is not None:
                yield document
        omitted.report()

    def _document(self, path: Path, number: int, row: Any) -> Optional[Document]:
        sides = [_lines(path, number, field, _value(path, number, row, field)) for field in self.fields]
        for field, lines in zip(self.fields, sides):
            if len(lines) != len(sides[0]):
                counts = f"{len(sides[0])} sentences in {self.fields[0]}, but {len(lines)} in {field}"
                raise InputError.at(path, number, f"{counts}; both sides need the same sentences")
        builder = DocumentBuilder((str(path),) * self.sides)
        for texts in zip(*sides):
            levels = [levels_ended(text) for text in texts]
            if min(levels) < max(levels):
                message = f"{boundary(max(levels))} on one side only; boundaries must be the same on both sides"
                raise InputError.at(path, number, message)
            if levels[0] or not any(texts):
                builder.end_paragraph(max(levels[0], 1))
            else:
                builder.add(texts, (number,) * self.sides)
        return None if builder.empty else builder.end_document()


@register("jsonl")
class JsonLinesReader(RowReader):
    """JSON lines; empty lines are skipped."""

    help = "JSON lines, a document per line, see --fields; packed files may end in .gz, .bz2, .xz or .zst"

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        for path in paths:
            lines = enumerate(read_lines(path), start=1)
            yield from self.documents(path, ((number, line) for number, line in lines if line))


@register("parquet")
class ParquetReader(RowReader):
    """Parquet files; one row group and the columns of the sides are in memory."""

    help = "Parquet, a document per row, see --fields; needs pip install 'docnmt_fairseq[parquet]'"

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        columns = list(dict.fromkeys(field.partition(".")[0] for field in self.fields))
        for path in paths:
            yield from self.documents(path, _parquet_rows(path, columns))


def _parsed(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InputError.at(path, number, f"not JSON: {error}") from error


def _parquet_rows(path: Path, columns: List[str]) -> Iterator[Tuple[int, Any]]:
    with needs_extra("parquet", path):
        import pyarrow
        from pyarrow import parquet
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                if column not in names:
                    raise InputError(f"{path}: no column {column} (--fields); its columns are {', '.join(names)}")
            for batch in file.iter_batches(PARQUET_ROWS, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError.at(path, number + 1, f"not Parquet, or damaged from this row on: {error}") from error


def _value(path: Path, number: int, row: Any, field: str) -> Any:
    """Returns the value at a.b.c of a row, of each entry if there is a list on the way."""
    name, _, rest = field.partition(".")
    if not isinstance(row, dict) or name not in row:
        has = f"it has {', '.join(map(str, row))}" if isinstance(row, dict) else "it is not an object"
        raise InputError.at(path, number, f"no {name} in the row: {has}; see --fields")
    value = row[name]
    if not rest:
        return value
    if isinstance(value, list):
        return [_value(path, number, entry, rest) for entry in value]
    return _value(path, number, value, rest)


def _lines(path: Path, number: int, field: str, value: Any) -> List[str]:
    """Returns the sentences of a side with boundaries between paragraphs, sections, ...."""
    if isinstance(value, str):
        value = value.split("\n")
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return ["" if is_blank(entry) else " ".join(entry.split()) for entry in value]
    levels = _depth(value) - 1
    if isinstance(value, list) and all(isinstance(entry, list) for entry in value) and levels <= MAX_LEVELS:
        return [line for unit in value for line in (*_lines(path, number, field, unit), boundary(levels))]
    message = f"{field}: neither text nor sentences in up to {MAX_LEVELS} levels of nested lists; see --fields"
    raise InputError.at(path, number, message)


def _depth(value: Any) -> int:
    """Returns the nesting depth of lists."""
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0

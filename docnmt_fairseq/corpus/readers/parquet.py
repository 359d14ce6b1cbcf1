"""Parquet: a row that holds a document of each side."""

from pathlib import Path
from typing import Any, Iterator, List, Sequence, Tuple

from docnmt_fairseq.corpus.arrow import module
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import register
from docnmt_fairseq.corpus.readers.rows import RowReader
from docnmt_fairseq.errors import InputError

ROWS = 16  # in memory as Python's objects


@register("parquet")
class ParquetReader(RowReader):
    """Parquet files."""

    help = "Parquet, a document a row, see --fields; needs pip install 'docnmt_fairseq[parquet]'"

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents; of a file, a row group at a time is read, and of that the columns that hold the sides.

        Raises:
            InputError: PyArrow is not installed; no Parquet, or a damaged file; no such column; a row is not as
                ``--fields`` says.
        """
        columns = list(dict.fromkeys(field.partition(".")[0] for field in self.fields))
        for path in paths:
            yield from self.documents(path, _rows(path, columns))


def _rows(path: Path, columns: List[str]) -> Iterator[Tuple[int, Any]]:
    pyarrow, parquet = module("pyarrow", path), module("pyarrow.parquet", path)
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            for column in columns:
                if column not in names:
                    raise InputError(f"{path}: no column {column} (--fields); it has {', '.join(names)}")
            for batch in file.iter_batches(ROWS, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError.at(path, number + 1, f"no Parquet, or damaged from this row on: {error}") from error

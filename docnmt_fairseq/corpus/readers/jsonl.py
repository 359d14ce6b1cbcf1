"""JSON lines: an object a line that holds a document of each side."""

from pathlib import Path
from typing import Any, Iterator, Sequence, Tuple

from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import register
from docnmt_fairseq.corpus.readers.rows import RowReader
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json


@register("jsonl")
class JsonLinesReader(RowReader):
    """JSON lines."""

    help = "JSON lines, a document a line, see --fields; packed files may end in .gz or .zst"

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents; empty lines are passed over.

        Raises:
            InputError: a line is no JSON, or not as ``--fields`` says; bad UTF-8.
        """
        for path in paths:
            yield from self.documents(path, _rows(path))


def _rows(path: Path) -> Iterator[Tuple[int, Any]]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line:
            continue
        try:
            yield number, parse_json(line)
        except ValueError as error:
            raise InputError.at(path, number, f"no JSON: {error}") from error

"""News-Commentary: plain text with empty lines between documents, one file per side; or one TSV with empty rows."""

import re
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.document import Document, split_at_empty_rows
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.corpus.readers.tsv import Columns, read_table
from docnmt_fairseq.errors import InputError

TABLE = (".tsv", ".tsv.gz")
PAIR = re.compile(r"([A-Za-z_]+)-([A-Za-z_]+)\.tsv(\.gz)?$")


@register("news-commentary")
class NewsCommentaryReader(Reader):
    """News-Commentary with empty lines or rows between documents."""

    help = "News-Commentary, empty lines or rows between documents; with empty sides use --on-empty drop"
    files = (
        "PREFIX, or one file per side; or one NAME.SOURCE-TARGET.tsv[.gz], its languages in the order of the columns"
    )

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the table, or the files of both sides."""
        if not any(argument.endswith(TABLE) for argument in arguments):
            return self.prefix_or_files(arguments)
        (path,) = self.one_file(arguments)
        self._columns(path)
        return [path]

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents."""
        if paths[0].name.endswith(TABLE):
            rows = enumerate(read_lines(paths[0], strip="\r\n"), start=1)
            return read_table(paths[0], rows, self._columns(paths[0]))
        lines = ((number, texts if any(texts) else None) for number, texts in parallel_lines(paths))
        return split_at_empty_rows(lines, tuple(str(path) for path in paths))

    def settings_from_names(self, paths: Sequence[Path]) -> Optional[List[int]]:
        """Returns the column of each side of a table."""
        return list(self._columns(paths[0]).texts) if paths[0].name.endswith(TABLE) else None

    def _columns(self, path: Path) -> Columns:
        """Returns the column of each side, from the languages in the file name."""
        found = PAIR.search(path.name)
        languages = list(found.groups()[:2]) if found else []
        wanted = self.reading.languages
        if not set(wanted) <= set(languages):
            raise InputError(
                f"{path}: the name must contain the languages {' and '.join(wanted)}, like NAME.de-en.tsv; rename the "
                "file, or use --format tsv with --columns"
            )
        return Columns(tuple(map(languages.index, wanted)), None)

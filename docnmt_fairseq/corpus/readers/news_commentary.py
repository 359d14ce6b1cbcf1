"""News-Commentary: plain text with empty lines between documents, a file a side; or one TSV with empty rows."""

import re
from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.boundaries import split_at_empty_rows
from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers import ReadOptions, one_file, prefix_or_files
from docnmt_fairseq.corpus.readers.tsv import Columns, read_table
from docnmt_fairseq.errors import InputError

HELP = "News-Commentary, empty lines or rows between documents; where one side is empty use --on-empty drop"
FILES = "PREFIX, or one file a side; or one NAME.SOURCE-TARGET.tsv[.gz], its languages in the order of the columns"

TABLE = (".tsv", ".tsv.gz")
PAIR = re.compile(r"([A-Za-z_]+)-([A-Za-z_]+)\.tsv(\.gz)?$")


def resolve(arguments: Sequence[str], options: ReadOptions) -> List[Path]:
    """Returns the table, or the files of both sides.

    Raises:
        InputError: also a table whose name does not hold the languages.
    """
    if not any(argument.endswith(TABLE) for argument in arguments):
        return prefix_or_files("news-commentary", arguments, options)
    (path,) = one_file("news-commentary", arguments)
    _columns(path, options)
    return [path]


def read(paths: Sequence[Path], options: ReadOptions) -> Iterator[Document]:
    """Yields the documents.

    Raises:
        InputError: bad UTF-8, unequal line counts, a row with too few columns.
    """
    if paths[0].name.endswith(TABLE):
        rows = enumerate(read_lines(paths[0], strip="\r\n"), start=1)
        return read_table(paths[0], rows, _columns(paths[0], options))
    return split_at_empty_rows(parallel_lines(paths), tuple(str(path) for path in paths))


def _columns(path: Path, options: ReadOptions) -> Columns:
    """Returns which column is which side, by the languages in the table's name."""
    found = PAIR.search(path.name)
    languages = list(found.groups()[:2]) if found else []
    wanted = [options.source_lang, options.target_lang][: options.sides]
    if not set(wanted) <= set(languages):
        raise InputError(
            f"{path}: its name does not hold the languages {' and '.join(map(str, wanted))} (as NAME.de-en.tsv does); "
            "rename it, or use --format tsv with --columns"
        )
    return Columns(tuple(map(languages.index, wanted)), None)

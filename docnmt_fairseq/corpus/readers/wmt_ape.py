"""Files of WMT's tasks of automatic post-editing: a sentence a line, source, machine translation and post-edit."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers import ReadOptions, one_file_a_side

HELP = "automatic post-editing: a sentence a line, without documents: every sentence is one of its own"
FILES = "PREFIX (files PREFIX.src and PREFIX.pe), or one file a side, e.g. PREFIX.mt PREFIX.pe"
SIDES = ("src", "pe")


def resolve(arguments: Sequence[str], options: ReadOptions) -> List[Path]:
    """Returns the files of a prefix, or the files themselves."""
    if len(arguments) == 1 and not (options.sides == 1 and Path(arguments[0]).is_file()):
        return [Path(f"{arguments[0]}.{side}") for side in SIDES[: options.sides]]
    return one_file_a_side("wmt-ape", arguments, options)


def read(paths: Sequence[Path], options: ReadOptions) -> Iterator[Document]:
    """Yields the sentences; lines that are empty on all sides are passed over.

    Raises:
        InputError: bad UTF-8, unequal line counts, a line that is empty on one side only.
    """
    return read_documents(paths, one_document_a_line=True, empty_sides=options.empty_sides)

"""Delimited text: a sentence a line, an empty line ends a document, a line ``<p>`` ends a paragraph."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers import ReadOptions, prefix_or_files

HELP = "a sentence a line, an empty line ends a document, a line <p> ends a paragraph"
FILES = "PREFIX (files PREFIX.SOURCE and PREFIX.TARGET), or one file a side"


def resolve(arguments: Sequence[str], options: ReadOptions) -> List[Path]:
    """Returns the files of a prefix, or the files themselves."""
    return prefix_or_files("delimited", arguments, options)


def read(paths: Sequence[Path], options: ReadOptions) -> Iterator[Document]:
    """Yields the documents."""
    return read_documents(paths, one_document_a_line=options.one_document_a_line, empty_sides=options.empty_sides)

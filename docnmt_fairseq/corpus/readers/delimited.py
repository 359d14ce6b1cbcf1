"""Delimited text: one sentence per line, an empty line ends a document, ``<p>`` a paragraph, ``<p> <p>`` a section."""

from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import Reader, ReaderOptions, register
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class DelimitedOptions(ReaderOptions):
    """Options of delimited text."""

    one_document_a_line: bool = option(False, "each line is a document")


@register("delimited")
class DelimitedReader(Reader):
    """Delimited text."""

    help = "one sentence per line, an empty line ends a document, a line <p> ends a paragraph, <p> <p> a section"
    files = "PREFIX (files PREFIX.SOURCE and PREFIX.TARGET), or one file per side"
    Options = DelimitedOptions
    line_aligned = True

    options: DelimitedOptions

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the files of a prefix, or the files themselves."""
        return self.prefix_or_files(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents."""
        one_document_a_line, empty_sides = self.options.one_document_a_line, self.reading.empty_sides
        return read_documents(paths, one_document_a_line=one_document_a_line, empty_sides=empty_sides)

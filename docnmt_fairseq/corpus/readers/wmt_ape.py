"""WMT automatic post-editing: source, machine translation and post-edit, one sentence per line, no documents."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import Reader, register

SIDES = ("src", "pe")


@register("wmt-ape")
class WmtApeReader(Reader):
    """Sentences for post-editing; every sentence is a document."""

    help = "automatic post-editing: one sentence per line, without documents: every sentence is a document"
    files = "PREFIX (files PREFIX.src and PREFIX.pe), or one file per side, e.g. PREFIX.mt PREFIX.pe"
    line_aligned = True

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns the files of a prefix, or the files themselves."""
        return self.prefix_or_files(arguments, SIDES)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the sentences; lines that are empty on all sides are skipped."""
        return read_documents(paths, one_document_a_line=True, empty_sides=self.reading.empty_sides)

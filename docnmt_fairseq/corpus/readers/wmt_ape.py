"""Files of WMT's tasks of automatic post-editing: a sentence a line, source, machine translation and post-edit."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.readers.base import Reader, register

SIDES = ("src", "pe")


@register("wmt-ape")
class WmtApeReader(Reader):
    """Sentences to be post-edited, without documents."""

    help = "automatic post-editing: a sentence a line, without documents: every sentence is one of its own"
    files = "PREFIX (files PREFIX.src and PREFIX.pe), or one file a side, e.g. PREFIX.mt PREFIX.pe"
    line_aligned = True

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """The files of a prefix, or the files themselves."""
        return self.prefix_or_files(arguments, SIDES)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the sentences; lines that are empty on all sides are passed over.

        Raises:
            InputError: bad UTF-8, unequal line counts, a line that is empty on one side only.
        """
        return read_documents(paths, one_document_a_line=True, empty_sides=self.reading.empty_sides)

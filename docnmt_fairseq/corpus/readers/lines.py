"""Readers of sentences in lines: delimited text, ``<d>`` text, corpora of automatic post-editing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import parallel_lines, read_documents
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.readers.base import Reader, ReaderOptions, register
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option

MARK = "<d>"


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
    resolve = Reader.prefix_or_files
    options: DelimitedOptions

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        one_document_a_line, empty_sides = self.options.one_document_a_line, self.reading.drop_incomplete
        return read_documents(paths, one_document_a_line=one_document_a_line, empty_sides=empty_sides)


@register("wmt-ape")
class WmtApeReader(Reader):
    """Automatic post-editing at WMT: source, machine translation and post-edit; every sentence is a document."""

    help = "automatic post-editing: one sentence per line, without documents: every sentence is a document"
    files = "PREFIX (files PREFIX.src and PREFIX.pe), or one file per side, e.g. PREFIX.mt PREFIX.pe"
    line_aligned = True

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        return self.prefix_or_files(arguments, ("src", "pe"))

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the sentences; lines that are empty on all sides are skipped."""
        return read_documents(paths, one_document_a_line=True, empty_sides=self.reading.drop_incomplete)


@register("d-lines")
class DLinesReader(Reader):
    """``<d>`` text of the corpora of selective attention."""

    help = "one sentence per line, a line <d> starts a document"
    files = "one file per side"
    resolve = Reader.one_per_side

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        builder = DocumentBuilder(tuple(map(str, paths)))
        started = False
        for number, texts in parallel_lines(paths):
            if any(text == MARK for text in texts) != all(text == MARK for text in texts):
                having = next(path for path, text in zip(paths, texts) if text == MARK)
                raise InputError.at(having, number, f"{MARK} on one side only; boundaries must be on the same lines")
            if texts[0] == MARK:
                started = True
                if not builder.empty:
                    yield builder.end_document()
            elif started:
                builder.add(texts, (number,) * len(texts))
            else:
                raise InputError.at(paths[0], number, f"text before the first {MARK}")
        if not builder.empty:
            yield builder.end_document()

"""``<d>`` text (selective attention corpora): a sentence a line, a line ``<d>`` starts a document."""

from pathlib import Path
from typing import Iterator, List, Sequence

from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.errors import InputError

MARK = "<d>"


@register("d-lines")
class DLinesReader(Reader):
    """``<d>`` text."""

    help = "a sentence a line, a line <d> starts a document"
    files = "one file a side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """One file a side."""
        return self.one_file_a_side(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents.

        Raises:
            InputError: bad UTF-8, unequal line counts, ``<d>`` on one side only, text before the first ``<d>``.
        """
        builder = DocumentBuilder(tuple(str(path) for path in paths))
        started = False
        for number, texts in parallel_lines(paths):
            if MARK not in texts:
                if not started:
                    raise InputError.at(paths[0], number, f"text before the first {MARK}: the file must start with one")
                builder.add(texts, (number,) * len(texts))
                continue
            started = True
            if any(text != MARK for text in texts):
                having = next(path for path, text in zip(paths, texts) if text == MARK)
                lacking = ", ".join(str(path) for path, text in zip(paths, texts) if text != MARK)
                raise InputError.at(
                    having, number, f"{MARK} here, but not in {lacking}; marks must be on the same lines"
                )
            if not builder.empty:
                yield builder.end_document()
        if not builder.empty:
            yield builder.end_document()

"""``<d>`` text (selective attention corpora): one sentence per line, a line ``<d>`` starts a document."""

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

    help = "one sentence per line, a line <d> starts a document"
    files = "one file per side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns one file per side."""
        return self.one_file_per_side(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents.

        Raises:
            InputError: unequal line counts, ``<d>`` on one side only, text before the first ``<d>``.
        """
        builder = DocumentBuilder(tuple(str(path) for path in paths))
        started = False
        for number, texts in parallel_lines(paths):
            if MARK not in texts:
                if not started:
                    raise InputError.at(paths[0], number, f"text before the first {MARK}")
                builder.add(texts, (number,) * len(texts))
                continue
            started = True
            if any(text != MARK for text in texts):
                having = next(path for path, text in zip(paths, texts) if text == MARK)
                lacking = ", ".join(str(path) for path, text in zip(paths, texts) if text != MARK)
                message = f"{MARK} here, but not in {lacking}; boundaries must be on the same lines"
                raise InputError.at(having, number, message)
            if not builder.empty:
                yield builder.end_document()
        if not builder.empty:
            yield builder.end_document()

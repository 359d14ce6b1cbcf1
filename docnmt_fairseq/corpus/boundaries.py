"""Rows of sentences to documents: at empty rows, or where the document's name changes. One document is in memory."""

import logging
from typing import Iterable, Iterator, Optional, Set, Tuple

from docnmt_fairseq.corpus.document import Document, DocumentBuilder, Sentence
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


def split_at_empty_rows(rows: Iterable[Tuple[int, Optional[Sentence]]], files: Tuple[str, ...]) -> Iterator[Document]:
    """Yields the documents between empty rows; without such a row one document, with a warning.

    Args:
        rows: line number and texts, None of an empty row; what is empty on some sides, or on all of a row that holds
            something else, is a sentence with empty sides.
        files: the file of each side.
    """
    builder = DocumentBuilder(files)
    divided = False
    for number, texts in rows:
        if texts is not None:
            builder.add(texts, (number,) * len(texts))
            continue
        divided = True
        if not builder.empty:
            yield builder.end_document()
    if not builder.empty:
        if not divided:
            logger.warning(f"{files[0]}: no empty row in it: read as one single document")
        yield builder.end_document()


def split_at_names(rows: Iterable[Tuple[int, str, Sentence]], files: Tuple[str, ...], place: str) -> Iterator[Document]:
    """Yields the documents of rows that each carry their document's name. Beside a document, all names are kept.

    Args:
        rows: line number, name of the document, texts.
        files: the file of each side.
        place: the file that holds the names.

    Raises:
        InputError: a document goes on after another one: the rows were shuffled, and their order is lost.
    """
    builder = DocumentBuilder(files)
    seen: Set[str] = set()
    current = None
    for number, name, texts in rows:
        if name != current:
            if name in seen:
                message = f"document {name} goes on here, after others; sort the rows by document, in reading order"
                raise InputError.at(place, number, message)
            seen.add(name)
            current = name
            if not builder.empty:
                yield builder.end_document()
        builder.add(texts, (number,) * len(texts))
    if not builder.empty:
        yield builder.end_document()

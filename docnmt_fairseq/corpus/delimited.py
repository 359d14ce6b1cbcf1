"""Delimited text: one sentence per line, an empty line ends a document, a line ``<p>`` a paragraph.

``<p> <p>`` ends a section with its last paragraph, and so on; see ``boundaries.py``. The sides of a parallel corpus are
files with the same boundaries on the same lines.
"""

import logging
from itertools import zip_longest
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.boundaries import DOCUMENT, PARAGRAPH, boundary, is_boundary, levels_ended
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import atomic_files, read_lines
from docnmt_fairseq.corpus.text import is_blank
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

logger = logging.getLogger(__name__)


def parallel_lines(paths: Sequence[PathLike]) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """Yields line number and the line of every file; empty lines at the end of longer files are ignored.

    Raises:
        InputError: the files have different numbers of lines.
    """
    end = 0  # first line that a file lacks
    for number, texts in enumerate(zip_longest(*map(_visible_lines, paths)), start=1):
        if None in texts:
            end = end or number
            if not any(texts):
                continue
            ended = " and ".join(str(path) for path, text in zip(paths, texts) if text is None)
            longer = next(path for path, text in zip(paths, texts) if text is not None)
            message = f"{ended} ended before this line; all sides need the same number of lines"
            raise InputError.at(longer, end, message)
        yield number, texts


def _visible_lines(path: PathLike) -> Iterator[str]:
    """Yields the lines of a file; lines without visible characters are empty lines, with a warning."""
    blank: List[int] = []
    for number, line in enumerate(read_lines(path), start=1):
        if line and is_blank(line):
            blank.append(number)
            line = ""
        yield line
    if blank:
        first = ", ".join(map(str, blank[:5]))
        logger.warning(f"{path}: {len(blank):,} lines without visible characters read as empty lines: {first}, …")


def map_sentences(lines: Sequence[str], function: Callable[[List[str]], List[str]]) -> List[str]:
    """Applies a function of lists of sentences to those of delimited lines; boundary lines are unchanged."""
    mapped = iter(function([line for line in lines if not is_boundary(line)]))
    return [line if is_boundary(line) else next(mapped) for line in lines]


def read_documents(
    paths: Sequence[PathLike], *, one_document_a_line: bool = False, empty_sides: bool = False
) -> Iterator[Document]:
    """Yields the documents of parallel delimited files, one at a time. Files without boundaries are one document.

    Args:
        paths: one file per side.
        one_document_a_line: every line is a document.
        empty_sides: a line that is empty on some sides only is a sentence, not an error.

    Raises:
        InputError: bad UTF-8, unequal line counts, unequal or misplaced boundaries; names file and line.
    """
    builder = DocumentBuilder(tuple(str(path) for path in paths))
    documents = marks = 0
    for number, texts in parallel_lines(paths):
        mark = _common_mark(paths, number, texts, empty_sides) if any(map(is_boundary, texts)) else None
        marks += mark is not None
        if mark is None:
            builder.add(texts, (number,) * len(texts))
            if not one_document_a_line:
                continue
        elif mark != DOCUMENT:
            if not builder.end_paragraph(levels_ended(mark)):
                where = "at the start of a document" if builder.empty else "after another one"
                message = f"misplaced {mark} {where}: it ends a paragraph, which needs a sentence"
                raise InputError.at(paths[0], number, message)
            continue
        if not builder.empty:
            documents += 1
            yield builder.end_document()
    if not builder.empty:
        yield builder.end_document()
        if documents == 0 and marks == 0:
            logger.warning(f"{builder.files[0]}: contains no empty line and no {PARAGRAPH}, read as a single document")


def _common_mark(paths: Sequence[PathLike], number: int, texts: Tuple[str, ...], empty_sides: bool) -> Optional[str]:
    """Returns the boundary that all sides have on a line, or None for a sentence (with an empty side, if allowed)."""
    if all(text == texts[0] for text in texts):
        return texts[0]
    boundaries = [text for text in texts if levels_ended(text)]
    if empty_sides and not boundaries:
        return None
    mark = max(boundaries, key=levels_ended, default=DOCUMENT)
    having = next(path for path, text in zip(paths, texts) if text == mark)
    lacking = ", ".join(str(path) for path, text in zip(paths, texts) if text != mark)
    message = f"{mark or 'empty line'} here, but not in {lacking}; boundaries must be on the same lines"
    if not boundaries:
        message += " and no side of a sentence pair may be empty (see --on-empty)"
    raise InputError.at(having, number, message)


def write_documents(documents: Iterable[Document], *shards: Sequence[PathLike]) -> int:
    """Writes parallel delimited files and returns the number of documents.

    Args:
        documents: documents.
        shards: files of each shard, one per side; documents are distributed round-robin, so that all shards are alike.

    Raises:
        InputError: a sentence is empty, more than one line, or equal to a boundary.
    """
    number = 0
    with atomic_files(*(file for shard in shards for file in shard)) as streams:
        sides = len(shards[0])
        for number, document in enumerate(documents, start=1):
            first = (number - 1) % len(shards) * sides
            for side, stream in enumerate(streams[first : first + sides]):
                stream.write("\n".join(document_lines(document, side)) + "\n")
    return number


def document_lines(document: Document, side: int = 0) -> List[str]:
    """Returns one side of a document as lines, including the empty line at its end; see :func:`write_documents`."""
    lines: List[str] = []
    for p, paragraph in enumerate(document.paragraphs):
        if p > 0:
            lines.append(boundary(document.levels_before(p)))
        for s, texts in enumerate(paragraph):
            text = texts[side]
            if is_boundary(text.strip()) or "\n" in text or "\r" in text:
                raise document.error(p, s, side, f"{text!r} cannot be written as one line that is not a boundary")
            lines.append(text)
    lines.append(DOCUMENT)
    return lines

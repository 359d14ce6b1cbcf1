"""Delimited text, the format between all parts: a sentence a line, an empty line ends a document, ``<p>`` a paragraph.

``<p> <p>`` ends a section with its last paragraph, and so on, see ``marks.py``. The sides of a parallel corpus are
files whose marks stand on the same lines.
"""

import logging
from itertools import zip_longest
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import PathLike, atomic_files, read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import DOCUMENT, PARAGRAPH, boundary, is_mark, levels_ended

logger = logging.getLogger(__name__)


def parallel_lines(paths: Sequence[PathLike]) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """Yields (line number, one line a file) over files of equally many lines.

    Raises:
        InputError: one file ends before another.
    """
    for number, texts in enumerate(zip_longest(*map(read_lines, paths)), start=1):
        if None in texts:
            ended = [str(path) for path, text in zip(paths, texts) if text is None]
            longer = [str(path) for path, text in zip(paths, texts) if text is not None]
            message = (
                f"{' and '.join(ended)} ended before this line (unequal line counts); all sides must have as many lines"
            )
            raise InputError.at(longer[0], number, message)
        yield number, texts


def read_documents(
    paths: Sequence[PathLike], *, one_document_a_line: bool = False, empty_sides: bool = False
) -> Iterator[Document]:
    """Yields the documents of parallel delimited files, holding one document in memory.

    Several empty lines in a row count as one. Files without any mark are one document, with a warning.

    Args:
        paths: one file a side.
        one_document_a_line: every line is a document of its own.
        empty_sides: a line that is empty on some sides only is a sentence with an empty side, not an error.

    Raises:
        InputError: bad UTF-8, unequal line counts, unequal or misplaced marks; names file and line.
    """
    builder = DocumentBuilder(tuple(str(path) for path in paths))
    documents = collapsed = marks = 0
    for number, texts in parallel_lines(paths):
        mark = _common_mark(paths, number, texts, empty_sides) if any(map(is_mark, texts)) else None
        if mark is None:
            builder.add(texts, (number,) * len(texts))
            if not one_document_a_line:
                continue
        elif mark != DOCUMENT:
            marks += 1
            if not builder.end_paragraph(levels_ended(mark)):
                raise _misplaced(paths, number, mark, builder.empty)
            continue
        else:
            marks += 1
            collapsed += builder.empty
        if not builder.empty:
            documents += 1
            yield builder.end_document()
    if not builder.empty:
        yield builder.end_document()
        if documents == 0 and marks == 0:
            logger.warning(
                f"{builder.files[0]}: no empty line and no {PARAGRAPH} in it: read as one single document "
                "(one document a line only if asked for)"
            )
    if collapsed and not one_document_a_line:
        logger.info(f"{builder.files[0]}: {collapsed} repeated empty lines ignored")


def _common_mark(paths: Sequence[PathLike], number: int, texts: Tuple[str, ...], empty_sides: bool) -> Optional[str]:
    """The mark that all sides of a line hold, or None for a sentence (with an empty side, if allowed)."""
    if all(text == texts[0] for text in texts):
        return texts[0]
    boundaries = [text for text in texts if levels_ended(text)]
    if empty_sides and not boundaries:
        return None
    marked = max(boundaries, key=levels_ended, default=DOCUMENT)
    having = [str(path) for path, text in zip(paths, texts) if text == marked]
    lacking = [str(path) for path, text in zip(paths, texts) if text != marked]
    if boundaries:
        message = f"{marked} here, but not in {', '.join(lacking)}; marks must be on the same lines"
    else:
        message = (
            f"empty line here, but text in {', '.join(lacking)}: either a document boundary on one side only, "
            "or a sentence pair with an empty side; mend the line, or drop such pairs if the option allows it"
        )
    raise InputError.at(having[0], number, message)


def _misplaced(paths: Sequence[PathLike], number: int, mark: str, at_start: bool) -> InputError:
    where = "at the start of a document" if at_start else "after another one"
    return InputError.at(paths[0], number, f"misplaced {mark}, {where}: it ends a paragraph, which needs a sentence")


def write_documents(documents: Iterable[Document], paths: Sequence[PathLike]) -> int:
    """Writes parallel delimited files and returns the number of lines in each; on an error nothing is left behind.

    Raises:
        InputError: a sentence cannot be written: empty, more than one line, a mark, or the wrong number of sides.
    """
    written = 0
    with atomic_files(*paths) as streams:
        for document in documents:
            for side, stream in enumerate(streams):
                lines = document_lines(document, side, len(streams))
                stream.write("\n".join(lines) + "\n")
            written += len(lines)
    return written


def document_lines(document: Document, side: int = 0, sides: Optional[int] = None) -> List[str]:
    """One side of a document as lines, its closing empty line included.

    Raises:
        InputError: as in :func:`write_documents`.
    """
    if not document.paragraphs:
        raise InputError("a document without sentences cannot be written")
    lines: List[str] = []
    for p, paragraph in enumerate(document.paragraphs):
        if not paragraph:
            raise InputError("a paragraph without sentences cannot be written")
        if p > 0:
            lines.append(boundary(document.levels_before(p)))
        for s, texts in enumerate(paragraph):
            problem = _problem(texts[side]) if sides in (None, len(texts)) else f"{len(texts)} sides instead of {sides}"
            if problem:
                raise document.error(p, s, min(side, len(texts) - 1), problem)
            lines.append(texts[side])
    lines.append(DOCUMENT)
    return lines


def _problem(text: str) -> Optional[str]:
    stripped = text.strip()
    if stripped == DOCUMENT:
        return "an empty sentence would read as the end of a document"
    if levels_ended(stripped):
        return f"a sentence that is exactly {stripped} would read as a paragraph boundary"
    if "\n" in text or "\r" in text:
        return "a sentence must be one line"
    return None

"""Documents, parallel over any number of sides, and how rows of sentences are grouped into them."""

import logging
from dataclasses import dataclass, field
from typing import Iterable, Iterator, List, Optional, Set, Tuple

from docnmt_fairseq.errors import InputError

Sentence = Tuple[str, ...]

logger = logging.getLogger(__name__)


@dataclass
class Document:
    """Paragraphs of sentences; a sentence has one string per side.

    Attributes:
        paragraphs: text of the document.
        files: file of each side, for error messages; empty for documents that were not read from files.
        lines: line numbers of each sentence of ``paragraphs``, one per side.
        ended: for each paragraph but the last, number of structure levels that end with it: 1 for the paragraph, 2 for
            its section as well, and so on. Empty if only paragraphs end.
    """

    paragraphs: List[List[Sentence]]
    files: Tuple[str, ...] = field(default=(), compare=False)
    lines: List[List[Tuple[int, ...]]] = field(default_factory=list, compare=False)
    ended: List[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.ended and max(self.ended) < 2:
            self.ended = []  # one representation for equal documents

    def levels_before(self, paragraph: int) -> int:
        """Returns the number of levels that end right before a paragraph, 0 for the first."""
        return min(paragraph, 1) if not (paragraph and self.ended) else self.ended[paragraph - 1]

    def sentences(self) -> Iterator[Sentence]:
        """Yields the sentences in order."""
        for paragraph in self.paragraphs:
            yield from paragraph

    def __len__(self) -> int:
        return sum(len(paragraph) for paragraph in self.paragraphs)

    def error(self, paragraph: int, sentence: int, side: int, message: str) -> InputError:
        """Returns the error for one side of one sentence, with file and line if known."""
        if self.files and self.lines:
            return InputError.at(self.files[side], self.lines[paragraph][sentence][side], message)
        return InputError(f"sentence {sentence + 1} of paragraph {paragraph + 1}: {message}")


class DocumentBuilder:
    """Collects sentences and boundaries in reading order into documents."""

    def __init__(self, files: Tuple[str, ...]):
        self.files = files
        self._paragraphs: List[List[Sentence]] = [[]]
        self._lines: List[List[Tuple[int, ...]]] = [[]]
        self._ended: List[int] = []

    def add(self, texts: Sentence, lines: Tuple[int, ...]) -> None:
        """Adds a sentence with its line numbers."""
        self._paragraphs[-1].append(texts)
        self._lines[-1].append(lines)

    @property
    def empty(self) -> bool:
        """True if nothing was added since the last document."""
        return not self._paragraphs[0]

    def end_paragraph(self, levels: int = 1) -> bool:
        """Ends the current paragraph and ``levels - 1`` levels above it.

        Returns:
            False if the current paragraph is empty; the levels then apply to the previous one.
        """
        if not self._paragraphs[-1]:
            if self._ended:
                self._ended[-1] = max(self._ended[-1], levels)
            return False
        self._paragraphs.append([])
        self._lines.append([])
        self._ended.append(levels)
        return True

    def end_document(self) -> Document:
        """Returns the collected document and starts a new one."""
        if not self._paragraphs[-1]:
            self._paragraphs.pop()
            self._lines.pop()
        document = Document(self._paragraphs, self.files, self._lines, self._ended[: len(self._paragraphs) - 1])
        self._paragraphs, self._lines, self._ended = [[]], [[]], []
        return document


def split_at_empty_rows(rows: Iterable[Tuple[int, Optional[Sentence]]], files: Tuple[str, ...]) -> Iterator[Document]:
    """Yields the documents between empty rows; rows without any empty row are one document, with a warning."""
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
            logger.warning(f"{files[0]}: contains no empty row, read as a single document")
        yield builder.end_document()


def split_at_names(rows: Iterable[Tuple[int, str, Sentence]], files: Tuple[str, ...], place: str) -> Iterator[Document]:
    """Yields the documents of rows that carry the name of their document.

    Args:
        rows: line number, document name, texts.
        files: file of each side.
        place: file with the names, for error messages.

    Raises:
        InputError: a document continues after another one.
    """
    builder = DocumentBuilder(files)
    seen: Set[str] = set()
    current = None
    for number, name, texts in rows:
        if name != current:
            if name in seen:
                message = f"document {name} continues after another one; sort the rows by document, in reading order"
                raise InputError.at(place, number, message)
            seen.add(name)
            current = name
            if not builder.empty:
                yield builder.end_document()
        builder.add(texts, (number,) * len(texts))
    if not builder.empty:
        yield builder.end_document()

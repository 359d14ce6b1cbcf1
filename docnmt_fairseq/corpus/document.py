"""What every reader yields and every writer takes: one document, parallel over any number of sides."""

from dataclasses import dataclass, field
from typing import Iterator, List, Tuple

from docnmt_fairseq.errors import InputError

Sentence = Tuple[str, ...]


@dataclass
class Document:
    """One document: paragraphs of sentences, a sentence being one string a side (one side for monolingual text).

    Two documents are equal when their text is: where it came from does not count.

    Attributes:
        paragraphs: the text.
        files: the file of each side, for error messages; empty for documents that were not read from files.
        lines: for each sentence of ``paragraphs`` the line it stands on, one number a side.
    """

    paragraphs: List[List[Sentence]]
    files: Tuple[str, ...] = field(default=(), compare=False)
    lines: List[List[Tuple[int, ...]]] = field(default_factory=list, compare=False)

    def sentences(self) -> Iterator[Sentence]:
        """Returns the sentences in order, without paragraphs."""
        for paragraph in self.paragraphs:
            yield from paragraph

    def __len__(self) -> int:
        return sum(len(paragraph) for paragraph in self.paragraphs)

    def error(self, paragraph: int, sentence: int, side: int, message: str) -> InputError:
        """Returns the error for one side of one sentence, naming its file and line where they are known."""
        if self.files and self.lines:
            return InputError.at(self.files[side], self.lines[paragraph][sentence][side], message)
        return InputError(f"sentence {sentence + 1} of paragraph {paragraph + 1}: {message}")


class DocumentBuilder:
    """Collects sentences and marks, met in order, into documents."""

    def __init__(self, files: Tuple[str, ...]):
        self.files = files
        self._paragraphs: List[List[Sentence]] = [[]]
        self._lines: List[List[Tuple[int, ...]]] = [[]]

    def add(self, texts: Sentence, lines: Tuple[int, ...]) -> None:
        """Adds one sentence that stands on these lines."""
        self._paragraphs[-1].append(texts)
        self._lines[-1].append(lines)

    @property
    def empty(self) -> bool:
        """Whether nothing was added since the last document."""
        return not self._paragraphs[0]

    def end_paragraph(self) -> bool:
        """Ends a paragraph; returns False, and does nothing, if there is none to end."""
        if not self._paragraphs[-1]:
            return False
        self._paragraphs.append([])
        self._lines.append([])
        return True

    def end_document(self) -> Document:
        """Returns what was collected and starts anew; a last paragraph without sentences was already ended."""
        if not self._paragraphs[-1]:
            self._paragraphs.pop()
            self._lines.pop()
        document = Document(self._paragraphs, self.files, self._lines)
        self._paragraphs, self._lines = [[]], [[]]
        return document

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
        ended: for each paragraph but the last how many levels of structure end with it: 1, itself; 2, its section;
            and so on. Empty: nowhere more than one.
    """

    paragraphs: List[List[Sentence]]
    files: Tuple[str, ...] = field(default=(), compare=False)
    lines: List[List[Tuple[int, ...]]] = field(default_factory=list, compare=False)
    ended: List[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.ended and max(self.ended) < 2:
            self.ended = []  # so that the same text is the same document

    def levels_before(self, paragraph: int) -> int:
        """How many levels end right before a paragraph, 0 for the first."""
        return min(paragraph, 1) if not (paragraph and self.ended) else self.ended[paragraph - 1]

    def sentences(self) -> Iterator[Sentence]:
        """The sentences in order, without paragraphs."""
        for paragraph in self.paragraphs:
            yield from paragraph

    def __len__(self) -> int:
        return sum(len(paragraph) for paragraph in self.paragraphs)

    def error(self, paragraph: int, sentence: int, side: int, message: str) -> InputError:
        """The error for one side of one sentence, naming its file and line where they are known."""
        if self.files and self.lines:
            return InputError.at(self.files[side], self.lines[paragraph][sentence][side], message)
        return InputError(f"sentence {sentence + 1} of paragraph {paragraph + 1}: {message}")


class DocumentBuilder:
    """Collects sentences and marks, met in order, into documents."""

    def __init__(self, files: Tuple[str, ...]):
        self.files = files
        self._paragraphs: List[List[Sentence]] = [[]]
        self._lines: List[List[Tuple[int, ...]]] = [[]]
        self._ended: List[int] = []

    def add(self, texts: Sentence, lines: Tuple[int, ...]) -> None:
        """Adds one sentence that stands on these lines."""
        self._paragraphs[-1].append(texts)
        self._lines[-1].append(lines)

    @property
    def empty(self) -> bool:
        """Whether nothing was added since the last document."""
        return not self._paragraphs[0]

    def end_paragraph(self, levels: int = 1) -> bool:
        """Ends a paragraph, and further levels of structure with it.

        Args:
            levels: how many end: 1, the paragraph alone; 2, its section, too; and so on.

        Returns:
            False if there is no paragraph to end; then the one before ends that many, if there is one.
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
        """What was collected; another document begins. A last paragraph without sentences was already ended."""
        if not self._paragraphs[-1]:
            self._paragraphs.pop()
            self._lines.pop()
        document = Document(self._paragraphs, self.files, self._lines, self._ended[: len(self._paragraphs) - 1])
        self._paragraphs, self._lines, self._ended = [[]], [[]], []
        return document

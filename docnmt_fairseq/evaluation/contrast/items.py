"""What a contrastive test set asks, whatever its format."""

import logging
from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Tuple, Union

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark

logger = logging.getLogger(__name__)

Fact = Union[int, str]


@dataclass(frozen=True, eq=False)
class Document:
    """A document, or as much of it as a test set has; items of the same one share the object.

    Attributes:
        name: for messages, and of what is drawn together when results are resampled.
        source: its lines, sentences and ``<p>``.
        target: their translations with the same marks; None where a test set has no target-side context.
    """

    name: str
    source: Tuple[str, ...]
    target: Optional[Tuple[str, ...]] = None


@dataclass(frozen=True)
class Item:
    """One question.

    Attributes:
        name: for messages and results.
        document: where the judged sentences stand.
        candidates: the translations to compare; each gives the lines of the document that it translates, all the same
            lines. (Target-side context of the others is the document's.)
        right: the number of the true one.
        facts: by which results are shown, such as ``{"distance": 1, "pronoun": "er"}``.
    """

    name: str
    document: Document
    candidates: Tuple[Mapping[int, str], ...]
    right: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def lines(self) -> List[int]:
        """The judged lines of the document, ascending."""
        return sorted(self.candidates[0])


@dataclass(frozen=True)
class GenerationItem:
    """One question that a translation answers: does its sentence hold the expected form?"""

    name: str
    document: Document
    line: int
    expected: str
    facts: Mapping[str, Fact] = field(default_factory=dict)


def check(item: Item) -> Item:
    """The item as it can be asked: false candidates that are the true one, letter by letter, are left out.

    Published sets have such. They would tie with the true one, whatever the model; a warning names the item.

    Raises:
        InputError: no true or no false candidate, an empty sentence; names the item.
    """
    if not 0 <= item.right < len(item.candidates):
        raise InputError(f"{item.name}: says that candidate {item.right} of {len(item.candidates)} is right")
    texts = [tuple(candidate[line] for line in item.lines) for candidate in item.candidates]
    for text in [*texts, [item.document.source[line] for line in item.lines]]:
        if any(is_mark(sentence.strip()) for sentence in text):
            raise InputError(f"{item.name}: a sentence is empty")
    kept = [number for number, text in enumerate(texts) if number == item.right or text != texts[item.right]]
    if len(kept) < 2:
        raise InputError(f"{item.name}: needs a true and at least one false translation that differs from it")
    if len(kept) < len(texts):
        logger.warning(f"{item.name}: {len(texts) - len(kept)} false translations are the true one; left out")
        item = replace(item, candidates=tuple(item.candidates[number] for number in kept), right=kept.index(item.right))
    return item


def distance_group(distance: int) -> str:
    """How a distance is shown: 0 to 3 by itself, all above together, as ContraPro does."""
    return str(distance) if distance <= 3 else "> 3"


def together(documents: List[Document]) -> Tuple[List[str], Dict[Document, int]]:
    """The source of documents as delimited text, and the line at which each begins.

    Raises:
        InputError: a document with an empty sentence, which would end it.
    """
    lines: List[str] = []
    starts: Dict[Document, int] = {}
    for document in documents:
        for side, sentences in (("source", document.source), ("target", document.target or ())):
            empty = next((number for number, sentence in enumerate(sentences) if not sentence.strip()), None)
            if empty is not None:
                raise InputError(f"{document.name}: {side} sentence {empty + 1} is empty")
        starts[document] = len(lines)
        lines += [*document.source, ""]
    return lines, starts

"""Index of documents, paragraphs, sections, ... in a data-bin: vectorised over sizes, a few bytes per sentence."""

import logging
from dataclasses import dataclass, field
from typing import List, Mapping, Optional, Protocol, Sequence

import numpy as np
from torch import Tensor

from docnmt_fairseq.boundaries import MAX_LEVELS, boundary
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


class Lines(Protocol):
    """Lines as tensors of token ids or features: an indexed dataset of fairseq, or one in memory."""

    @property
    def sizes(self) -> np.ndarray:
        """Number of items of each line, [lines]."""

    def __getitem__(self, item: int) -> Tensor: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Marks:
    """Boundaries of one side of a corpus, one entry per item, i.e. per line.

    Attributes:
        document_end: [items] bool, items of one token: empty lines.
        levels_ended: [items] int8, number of structure levels that end: k for an item of k ``<p>`` and the end of
            sentence, see ``boundaries.py``; 0: none.
    """

    document_end: np.ndarray
    levels_ended: np.ndarray

    @classmethod
    def read(cls, dataset: Lines, paragraph_symbol: Optional[int]) -> "Marks":
        """Reads the boundaries of a fairseq dataset.

        Args:
            dataset: indexed dataset; its sizes are read, and the tokens of its shortest items.
            paragraph_symbol: id of ``<p>``, None if the dictionary lacks it.
        """
        sizes = np.asarray(dataset.sizes)
        levels_ended = np.zeros(len(sizes), dtype=np.int8)
        for levels in range(1, MAX_LEVELS + 1) if paragraph_symbol is not None else ():
            found = np.flatnonzero(sizes == levels + 1)
            for place in range(levels):
                found = found[tokens_at(dataset, found, place) == paragraph_symbol]
            levels_ended[found] = levels
        return cls(sizes == 1, levels_ended)

    @property
    def is_sentence(self) -> np.ndarray:
        """Items that are no boundary, [items] bool."""
        return ~(self.document_end | (self.levels_ended > 0))


def tokens_at(dataset: Lines, items: np.ndarray, place: int = 0) -> np.ndarray:
    """Returns the token at a position of the given items, directly from the memory map if there is one."""
    index, buffer = getattr(dataset, "_index", None), getattr(dataset, "_bin_buffer", None)
    if buffer is not None and index is not None and hasattr(index, "_pointers"):
        tokens = np.frombuffer(buffer, dtype=index.dtype)
        return tokens[np.asarray(index._pointers)[items] // tokens.itemsize + place]
    return np.fromiter((int(dataset[int(item)][place]) for item in items), dtype=np.int64, count=len(items))


def check_parallel(source: Marks, target: Marks, name: str, target_name: str = "target") -> None:
    """Raises :class:`InputError` with the first line where the boundaries of the two sides differ."""
    if len(source.document_end) != len(target.document_end):
        lines = f"{len(source.document_end):,} source lines, {len(target.document_end):,} {target_name} lines"
        raise InputError(f"{name}: {lines}; both sides need the same lines")
    for what, mark in (("an empty line", "document_end"), ("<p>", "levels_ended")):
        of_source, of_target = getattr(source, mark), getattr(target, mark)
        different = np.flatnonzero(of_source != of_target)
        if len(different):
            sides = ("source", target_name)
            first = different[0]
            side, other = sides if of_source[first] > of_target[first] else sides[::-1]
            if mark == "levels_ended":
                what = boundary(int(max(of_source[first], of_target[first])))
            raise InputError(
                f"{name}: line {first + 1}: {what} on the {side} side only; boundaries must be on the same lines of "
                f"both sides, and no sentence may be empty: correct the {other} or the {side} text"
            )


@dataclass(frozen=True)
class DocumentIndex:
    """Sentences of a corpus and the first sentences of its documents and paragraphs.

    Attributes:
        items: [S] item number (line) of every sentence.
        documents: [D + 1] first sentence of every document, and S.
        paragraphs: [P] first sentence of every paragraph, including the first of each document.
        levels: [P] number of structure levels that begin with each paragraph, all of them with a document's first;
            empty if there are only paragraphs.
        sizes: [S] sizes of the sentences by :func:`name_of` their files, as far as known.
    """

    items: np.ndarray
    documents: np.ndarray
    paragraphs: np.ndarray
    levels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    sizes: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def build(cls, marks: Marks, name: str, unmarked: str = "document", parts: Sequence[int] = ()) -> "DocumentIndex":
        """Builds the index of a corpus; a ``<p>`` that ends nothing is ignored.

        Args:
            marks: boundaries, equal on both sides.
            name: name of the corpus, for messages.
            unmarked: a file without an empty line is one ``document``, or one document per ``line``.
            parts: items at which another file begins: documents end there, and ``unmarked`` applies to each file.

        Raises:
            InputError: more lines than 32-bit line numbers can name.
        """
        if len(marks.document_end) > np.iinfo(np.int32).max:
            raise InputError(
                f"{name}: {len(marks.document_end):,} lines; use docnmt prepare --shards for more data-bins"
            )
        items = np.flatnonzero(marks.is_sentence).astype(np.int32)
        unmarked_items = items[_in_unmarked_files(marks.document_end, parts)[items]]
        alone = unmarked_items if unmarked == "line" else []
        ends = np.concatenate([np.flatnonzero(marks.document_end), parts, alone])
        starts = np.concatenate([[0], np.searchsorted(items, ends), [len(items)]])
        documents = np.unique(starts)  # without documents that have no sentence
        if len(unmarked_items) and unmarked != "line":
            logger.warning(
                f"{name}: a file has no empty line, so its sentences ({len(unmarked_items):,} in such files) are one "
                "document; if every line is a document, give --unmarked-corpus line"
            )
        paragraph_ends = np.flatnonzero(marks.levels_ended)
        inner = np.searchsorted(items, paragraph_ends).astype(np.int32)
        paragraphs = np.union1d(documents[:-1], inner[inner < len(items)]).astype(np.int32)
        ended = marks.levels_ended[paragraph_ends[inner < len(items)]]
        levels = _levels(documents[:-1], paragraphs, inner[inner < len(items)], ended)
        return cls(items, documents.astype(np.int32), paragraphs, levels)

    def __len__(self) -> int:
        return len(self.documents) - 1

    @property
    def depth(self) -> int:
        """Number of structure levels between sentence and document: 1 for paragraphs, or more."""
        return int(self.levels[0]) if len(self.levels) else 1  # the first paragraph opens a document

    def unit_positions(self, document: int, start: int, end: int) -> np.ndarray:
        """Returns the positions of the paragraphs, sections, ... of sentences start..end-1, [depth, sentences]."""
        sentences = np.arange(start, end, dtype=self.paragraphs.dtype)  # with another type numpy would copy the table
        first = np.searchsorted(self.paragraphs, self.documents[document], side="right")
        paragraph = np.searchsorted(self.paragraphs, sentences, side="right") - first
        if not len(self.levels):
            return paragraph[None]
        begun = self.levels[first : first + int(paragraph.max(initial=0))] > np.arange(self.depth)[:, None]
        return np.pad(begun.cumsum(1), ((0, 0), (1, 0)))[:, paragraph]


def _in_unmarked_files(document_end: np.ndarray, parts: Sequence[int]) -> np.ndarray:
    """Returns whether each item is in a file without empty lines, [items] bool."""
    starts = np.unique([0, *parts])
    marked = np.logical_or.reduceat(document_end, starts)
    return np.repeat(~marked, np.diff(starts, append=len(document_end)))


def _levels(documents: np.ndarray, paragraphs: np.ndarray, starts: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """Returns the number of levels that begin with each paragraph; empty if there are only paragraphs.

    Args:
        documents: [D] first sentence of each document.
        paragraphs: [P] first sentence of each paragraph.
        starts: [marks] sentence after each boundary.
        ended: [marks] levels that end at each boundary.
    """
    depth = int(ended.max(initial=1))
    if depth == 1:
        return np.zeros(0, dtype=np.int32)
    levels = np.ones(len(paragraphs), dtype=np.int32)
    np.maximum.at(levels, np.searchsorted(paragraphs, starts), ended)
    levels[np.searchsorted(paragraphs, documents)] = depth
    return levels


class LinesInMemory:
    """Indexed dataset of a list of token tensors."""

    def __init__(self, lines: List[Tensor]):
        self.lines = lines
        self.sizes = np.array([len(line) for line in lines])

    def __getitem__(self, item: int) -> Tensor:
        return self.lines[item]

    def __len__(self) -> int:
        return len(self.lines)


def index_of(lines: LinesInMemory, paragraph_symbol: Optional[int]) -> DocumentIndex:
    """Returns the index of typed lines, whose last document may be incomplete; empty without sentences."""
    marks = Marks.read(lines, paragraph_symbol)
    marked = Marks(np.append(marks.document_end, True), np.append(marks.levels_ended, 0))
    return DocumentIndex.build(marked, "input")


def files_of(dataset: Lines) -> List[str]:
    """Returns the files of a dataset without suffix: one, several for a combined dataset, none for others."""
    paths = [getattr(part, "_path", None) for part in getattr(dataset, "datasets", [dataset])]
    return [path for path in paths if isinstance(path, str)] if all(paths) else []


def name_of(dataset: Lines) -> str:
    """Returns a name of a dataset made from its files."""
    return "+".join(files_of(dataset))


def part_starts(dataset: Lines) -> List[int]:
    """Returns the first items of the files of a combined dataset (train, train1, ...), including repetitions."""
    starts: List[int] = []
    begin = 0
    for length, end in zip(getattr(dataset, "real_sizes", []), getattr(dataset, "cumulative_sizes", [])):
        starts += range(begin, end, length)
        begin = end
    return starts


@dataclass(frozen=True)
class Split:
    """Documents of a data-bin, or of given text.

    Attributes:
        source, target: indexed datasets of sentences and boundaries; no target in translation.
        index: index of the documents.
        name: name for messages.
        extra: datasets of the same items, texts or features of the sentences; None for extra sources that are taken
            from the document.
        similar: [items, K] how many sentences back the most similar ones are, see ``selected_context.py``.
    """

    source: Lines
    target: Optional[Lines]
    index: DocumentIndex
    name: str = "input"
    extra: Sequence[Optional[Lines]] = ()
    similar: Optional[np.ndarray] = None

"""Where documents, paragraphs, sections, ... begin in a data-bin: vectorised over sizes, a few bytes a sentence."""

import logging
from dataclasses import dataclass, field
from typing import List, Mapping, Optional, Protocol, Sequence

import numpy as np
from torch import Tensor

from docnmt_fairseq.boundaries import MAX_LEVELS, boundary
from docnmt_fairseq.errors import InputError

MOST_LINES = np.iinfo(np.int32).max  # of a corpus: lines are numbered in four bytes

logger = logging.getLogger(__name__)


class Lines(Protocol):
    """Lines as tensors, of token numbers or features: an indexed dataset of fairseq, or one in memory."""

    @property
    def sizes(self) -> np.ndarray:
        """How many items each line has, [lines]."""

    def __getitem__(self, item: int) -> Tensor: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Marks:
    """The marks of one side of a corpus, one entry an item, i.e. a line of the text.

    Attributes:
        document_end: [items] bool, an item of one token: the empty line.
        levels_ended: [items] int8, how many levels of structure end: those of an item of k ``<p>`` and the end of the
            sentence are k, see ``boundaries.py``; 0: none.
    """

    document_end: np.ndarray
    levels_ended: np.ndarray

    @classmethod
    def read(cls, dataset: Lines, paragraph_symbol: Optional[int]) -> "Marks":
        """The marks of a fairseq dataset.

        Args:
            dataset: an indexed dataset; its sizes are read, and tokens of its shortest items.
            paragraph_symbol: the number of ``<p>`` in the dictionary, None if it is not there.
        """
        sizes = np.asarray(dataset.sizes)
        levels_ended = np.zeros(len(sizes), dtype=np.int8)
        for levels in range(1, MAX_LEVELS + 1) if paragraph_symbol is not None else ():
            found = np.flatnonzero(sizes == levels + 1)
            for place in range(levels):
                found = found[tokens_at(dataset, found, place) == paragraph_symbol]
            levels_ended[found] = levels
        return cls(sizes == 1, levels_ended)


def tokens_at(dataset: Lines, items: np.ndarray, place: int = 0) -> np.ndarray:
    """The token at a place of the given items, from 0, straight from the memory map where there is one."""
    index, buffer = getattr(dataset, "_index", None), getattr(dataset, "_bin_buffer", None)
    if buffer is not None and index is not None and hasattr(index, "_pointers"):
        tokens = np.frombuffer(buffer, dtype=index.dtype)
        return tokens[np.asarray(index._pointers)[items] // tokens.itemsize + place]
    return np.fromiter((int(dataset[int(item)][place]) for item in items), dtype=np.int64, count=len(items))


def check_parallel(source: Marks, target: Marks, name: str, target_name: str = "target") -> None:
    """Raises :class:`InputError` naming the first line where the marks of the two sides differ."""
    if len(source.document_end) != len(target.document_end):
        lines = f"{len(source.document_end):,} source lines, {len(target.document_end):,} {target_name} lines"
        raise InputError(f"{name}: {lines}; both sides need the same lines and marks")
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
                f"{name}: line {first + 1}: {what} on the {side} side only; document and paragraph ends stand "
                f"on the same line of both sides, and no sentence is empty: mend the {other} or the {side} text"
            )


@dataclass(frozen=True)
class DocumentIndex:
    """Sentences of a corpus and where its documents and paragraphs begin.

    Attributes:
        items: [S] item number (line) of every sentence.
        documents: [D + 1] first sentence of every document, and S.
        paragraphs: [P] first sentence of every paragraph, those that open a document included.
        levels: [P] how many levels of structure begin with each paragraph, with a document's first all that there are;
            empty: nowhere more than the paragraph.
        sizes: [S] of sentences, as far as they are known, by the files that they are of, see :func:`name_of`.
    """

    items: np.ndarray
    documents: np.ndarray
    paragraphs: np.ndarray
    levels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    sizes: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def build(
        cls, marks: Marks, name: str, unmarked: str = "document", parts: Sequence[int] = (), strict: bool = True
    ) -> "DocumentIndex":
        """The index of a corpus.

        Args:
            marks: of either side, they are equal.
            name: of the corpus, for messages.
            unmarked: what a file without an empty line is: one ``document``, or a document a ``line``.
            parts: items at which another file begins: no document goes on there, and each is judged by itself.
            strict: refuse a ``<p>`` that ends nothing; else it means nothing.

        Raises:
            InputError: a ``<p>`` that ends nothing, no sentence at all, or too many lines.
        """
        if len(marks.document_end) > MOST_LINES:
            raise InputError(
                f"{name}: {len(marks.document_end):,} lines, more than the {MOST_LINES:,} that one data-bin may have; "
                "divide it by docnmt prepare --shards, and train on data-bin:data-bin-1:..."
            )
        items = np.flatnonzero(~(marks.document_end | (marks.levels_ended > 0))).astype(np.int32)
        if not len(items):
            raise InputError(f"{name}: no sentences")
        unmarked_items = items[_in_unmarked_files(marks.document_end, parts)[items]]
        alone = unmarked_items if unmarked == "line" else []
        ends = np.concatenate([np.flatnonzero(marks.document_end), parts, alone])
        documents = _starts(items, ends, len(items))
        if len(unmarked_items) and unmarked != "line":
            logger.warning(
                f"{name}: no empty line in a file of it, so its sentences ({len(unmarked_items):,} in such files) are "
                "taken as one document; if every line is a document of its own, say --unmarked-corpus line"
            )
        paragraph_ends = np.flatnonzero(marks.levels_ended)
        if strict:
            _check_paragraphs(marks, paragraph_ends, name)
        inner = np.searchsorted(items, paragraph_ends).astype(np.int32)
        paragraphs = np.union1d(documents[:-1], inner[inner < len(items)]).astype(np.int32)
        ended = marks.levels_ended[paragraph_ends[inner < len(items)]]
        levels = _levels(documents[:-1], paragraphs, inner[inner < len(items)], ended)
        return cls(items, documents.astype(np.int32), paragraphs, levels)

    def __len__(self) -> int:
        return len(self.documents) - 1

    @property
    def depth(self) -> int:
        """How many levels of structure there are between sentence and document: 1, paragraphs, or more."""
        return int(self.levels[0]) if len(self.levels) else 1  # the first paragraph opens a document

    def unit_positions(self, document: int, start: int, end: int) -> np.ndarray:
        """Places in the document of paragraphs, sections, ... of sentences start..end-1, from 0, [depth, sentences]."""
        sentences = np.arange(start, end, dtype=self.paragraphs.dtype)  # of another type numpy would copy the table
        first = np.searchsorted(self.paragraphs, self.documents[document], side="right")
        paragraph = np.searchsorted(self.paragraphs, sentences, side="right") - first
        if not len(self.levels):
            return paragraph[None]
        begun = self.levels[first : first + int(paragraph.max(initial=0))] > np.arange(self.depth)[:, None]
        return np.pad(begun.cumsum(1), ((0, 0), (1, 0)))[:, paragraph]


def _in_unmarked_files(document_end: np.ndarray, parts: Sequence[int]) -> np.ndarray:
    """Whether an item is in a file that has no empty line, [items] bool.

    Args:
        document_end: [items] bool.
        parts: items at which files begin.
    """
    starts = np.unique([0, *parts])
    marked = np.logical_or.reduceat(document_end, starts)
    return np.repeat(~marked, np.diff(starts, append=len(document_end)))


def _starts(items: np.ndarray, ends: np.ndarray, total: int) -> np.ndarray:
    """The first sentences of documents, and the total; documents without a sentence are left out."""
    return np.unique(np.concatenate([[0], np.searchsorted(items, ends), [total]]))


def _levels(documents: np.ndarray, paragraphs: np.ndarray, starts: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """How many levels begin with each paragraph; none where that is nowhere more than one.

    Args:
        documents: [D] first sentence of each.
        paragraphs: [P] likewise.
        starts: [marks] the sentence behind each mark.
        ended: [marks] the levels that it ends.
    """
    depth = int(ended.max(initial=1))
    if depth == 1:
        return np.zeros(0, dtype=np.int32)
    levels = np.ones(len(paragraphs), dtype=np.int32)
    np.maximum.at(levels, np.searchsorted(paragraphs, starts), ended)
    levels[np.searchsorted(paragraphs, documents)] = depth
    return levels


def _check_paragraphs(marks: Marks, ends: np.ndarray, name: str) -> None:
    """Raises :class:`InputError` at the first ``<p>`` that stands at the start of a document or after another."""
    before = ends - 1
    is_boundary = marks.document_end | (marks.levels_ended > 0)
    misplaced = is_boundary[
        np.maximum(before, 0)
    ]  # before the first line there is none; if a mark, it is misplaced itself
    if misplaced.any():
        line = int(ends[np.argmax(misplaced)]) + 1
        mark = boundary(int(marks.levels_ended[line - 1]))
        raise InputError(f"{name}: line {line}: {mark} ends a paragraph, but no sentence stands before it")


def files_of(dataset: Lines) -> List[str]:
    """The files that a dataset is read from, without their endings: one, of a combined one several, of others none."""
    paths = [getattr(part, "_path", None) for part in getattr(dataset, "datasets", [dataset])]
    return [path for path in paths if isinstance(path, str)] if all(paths) else []


def name_of(dataset: Lines) -> str:
    """What tells a dataset of files from those of others."""
    return "+".join(files_of(dataset))


def part_starts(dataset: Lines) -> List[int]:
    """Where the files of a combined dataset begin (train, train1, ...), each as often as it is repeated."""
    starts: List[int] = []
    begin = 0
    for length, end in zip(getattr(dataset, "real_sizes", []), getattr(dataset, "cumulative_sizes", [])):
        starts += range(begin, end, length)
        begin = end
    return starts

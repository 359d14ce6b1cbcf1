"""Texts that are ready to be translated, and what a translator finds of their sentences."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np
from fairseq.data import FairseqDataset
from torch import Tensor

from docnmt_fairseq.data.concatenation import Hypothesis

LINE_BITS = 40  # of the number of a sentence in a batch; above them stands which piece it is of


@dataclass(frozen=True, eq=False)
class PreparedText:
    """Documents in the pieces that a model takes.

    Attributes:
        starts: of each document, the number of its first line.
        dataset: the pieces, or windows of sentences; the ids of sentences are the numbers of their lines.
        decoded: [pieces] how many sentences each translates.
        batches: numbers of pieces that may be encoded together.
        alone: every sentence is seen by itself.
        prefixes: by line, the tokens [·] that its translation begins with.
        corrected: by line, the tokens [·] that later sentences see in place of its translation, its end included.
    """

    starts: Sequence[int]
    dataset: FairseqDataset
    decoded: np.ndarray
    batches: Sequence[Sequence[int]]
    alone: bool = False
    prefixes: Mapping[int, np.ndarray] = field(default_factory=dict)
    corrected: Mapping[int, Tensor] = field(default_factory=dict)

    @property
    def pieces(self) -> "List[Piece]":
        """All pieces, in the order of the lines."""
        return [Piece(self, number) for number in sorted(number for batch in self.batches for number in batch)]

    @property
    def sentences(self) -> List[int]:
        """The numbers of the lines that are sentences, ascending; the others are marks."""
        return [int(item) for item in self.dataset.index.items]


@dataclass(frozen=True)
class Piece:
    """Sentences of a text that are encoded together.

    Attributes:
        text: the text.
        number: of the piece in it.
    """

    text: PreparedText
    number: int

    @property
    def tokens(self) -> int:
        """Its source tokens, with those of its context."""
        return int(self.text.dataset.num_tokens(self.number))

    @property
    def sentences(self) -> int:
        """Those that it translates."""
        return int(self.text.decoded[self.number])


@dataclass(frozen=True)
class Result:
    """A sentence that has been translated.

    Attributes:
        text: that it is of.
        line: its number there.
        hypotheses: the best first.
    """

    text: PreparedText
    line: int
    hypotheses: List[Hypothesis]


def sample_of(pieces: Sequence[Piece]) -> Dict[str, Any]:
    """What models get of some pieces as one batch; ids are lines of the texts.

    By row, ``texts`` names the text, ``prefixes`` what the translation begins with, and ``corrected`` what later
    sentences see in its place, or None.
    """
    items = [_numbered(piece.text.dataset[piece.number], place) for place, piece in enumerate(pieces)]
    sample: Dict[str, Any] = pieces[0].text.dataset.collater(items)
    places, lines = sample["id"] >> LINE_BITS, sample["id"] & ((1 << LINE_BITS) - 1)
    texts = [pieces[place].text for place in places.tolist()]
    of_text = list(zip(texts, lines.tolist()))
    prefixes = [text.prefixes.get(line) for text, line in of_text]
    corrected = [text.corrected.get(line) for text, line in of_text]
    return {**sample, "id": lines, "texts": texts, "prefixes": prefixes, "corrected": corrected}


def _numbered(item: Dict[str, Any], place: int) -> Dict[str, Any]:
    """An item whose sentence ids say in their upper bits which of a batch it is."""
    ids = "ids" if "ids" in item else "id"  # of several sentences, or of one
    return {**item, ids: item[ids] + (place << LINE_BITS)}

"""From sentences to items without the text of their pieces: SentencePiece's own numbers, taken for a dictionary's."""

from itertools import chain
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

import numpy as np

from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.items import Items, Numbering, with_ends
from docnmt_fairseq.corpus.subwords import load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import BOUNDARIES, DOCUMENT, PARAGRAPH

if TYPE_CHECKING:
    from fairseq.data import Dictionary


class PieceNumbering:
    """The function from delimited lines to the items that their pieces, as text, would be numbered as.

    A table takes the model's numbers to those of the dictionary. Behind them it has those of ``<p>`` and of the
    language token, and then the dictionary's own, for sentences with a piece of which the dictionary must be asked:
    what a model takes for unknown it may have all the same, and a piece that holds white space is several words.

    Args:
        model: a SentencePiece model.
        dictionary: of the side.
        token: what sentences begin with, if anything.
        workers: threads.
    """

    def __init__(self, model: PathLike, dictionary: "Dictionary", token: Optional[str] = None, workers: int = 1):
        self._processor = load_subword_model(model)
        self._by_text = Numbering(dictionary)
        self._workers, self._end = workers, dictionary.eos()
        pieces = [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]
        known = [dictionary.index(piece) for piece in (*pieces, PARAGRAPH, token or "")]
        self._own = len(known)
        self._table = np.concatenate([known, np.arange(len(dictionary))])
        self._marks: Dict[str, List[int]] = {DOCUMENT: []}
        self._marks |= {mark: [len(pieces)] * levels for mark, levels in BOUNDARIES.items()}
        self._begin = [] if token is None else [len(pieces) + 1]
        self._asked = np.array([piece.split() != [piece] for piece in pieces])
        self._asked[self._processor.unk_id()] = True

    def __call__(self, lines: Sequence[str], path: PathLike, first: int) -> Items:
        """The items of lines.

        Args:
            lines: sentences and marks.
            path: their file, for messages.
            first: the number of the first of them there.

        Raises:
            InputError: nothing is left of a sentence, or a mark; names file and line.
        """
        encoded = iter(self._encode([line for line in lines if line not in self._marks]))
        numbers = [self._marks[line] if line in self._marks else next(encoded) for line in lines]
        lengths = np.fromiter(map(len, numbers), np.int64, len(numbers))
        items = self._table[np.fromiter(chain.from_iterable(numbers), np.int64, int(lengths.sum()))]
        for short in np.flatnonzero(lengths <= len(self._begin) + 1).tolist():
            left = [self._table[number] for number in numbers[short][len(self._begin) :]]
            if lines[short] not in self._marks and left in ([], [self._table[self._own - 2]]):
                raise InputError.at(path, first + short, "nothing is left of this sentence in pieces; remove it")
        return with_ends(lengths, items, self._end)

    def _encode(self, sentences: List[str]) -> List[List[int]]:
        """The numbers of each sentence, in those of the table."""
        if not sentences:
            return []
        found: List[List[int]] = self._processor.encode(sentences, out_type=int, num_threads=self._workers)
        ends = np.cumsum(np.fromiter(map(len, found), np.int64, len(found)))
        asked = np.flatnonzero(self._asked[np.fromiter(chain.from_iterable(found), np.int64, int(ends[-1]))])
        for number in np.unique(np.searchsorted(ends, asked, side="right")).tolist():
            pieces = " ".join(self._processor.encode(sentences[number], out_type=str))
            found[number] = (self._by_text([pieces]).tokens[:-1] + self._own).tolist()
        return [self._begin + one for one in found] if self._begin else found

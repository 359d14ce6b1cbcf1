"""Lines that arrive buffer by buffer (fairseq-interactive) as documents: the last one stays open."""

from collections import deque
from typing import Deque, Dict, List

import numpy as np
from torch import Tensor

from docnmt_fairseq.data.document_dataset import DocumentDataset
from docnmt_fairseq.data.document_index import DocumentIndex, Marks
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layout import DocumentLayout


class LinesInMemory:
    """The part of an indexed dataset that documents need, over a list of token tensors."""

    def __init__(self, lines: List[Tensor]):
        self.lines = lines
        self.sizes = np.array([len(line) for line in lines])

    def __getitem__(self, item: int) -> Tensor:
        return self.lines[item]

    def __len__(self) -> int:
        return len(self.lines)


class InteractiveDataset(DocumentDataset):
    """Remembers the layouts of its batches, since fairseq-interactive keeps the tokens only.

    Args:
        layouts: where they are put, in the order of the batches.
        carried: lines at the front that were translated before: context only.
    """

    def __init__(self, *args, layouts: Deque[DocumentLayout], carried: int, **kwargs):
        super().__init__(*args, **kwargs)
        self.layouts = layouts
        self.carried = carried

    def __getitem__(self, number: int) -> Dict[str, object]:
        sample = super().__getitem__(number)
        old = sample["ids"] < self.carried
        decoded = sample["decoded"].copy()
        decoded[np.flatnonzero(decoded)[old]] = False
        return {**sample, "decoded": decoded, "ids": sample["ids"][~old] - self.carried}

    def ordered_indices(self) -> np.ndarray:
        """Returns the pieces that hold new sentences."""
        last = self.index.items[self.pieces.end - 1] if len(self) else np.zeros(0)
        return np.flatnonzero(last >= self.carried)

    def collater(self, samples: List[Dict[str, object]]) -> Dict[str, object]:
        """Returns the batch, remembering its layout."""
        batch = super().collater(samples)
        if batch:
            self.layouts.append(batch["net_input"]["layout"])
        return batch


class OpenDocument:
    """The document that is being typed: its sentences so far are context for the next ones.

    Args:
        pad, eos: numbers of the padding and the end-of-sentence symbol.
        paragraph_symbol: number of ``<p>``, None if the dictionary lacks it.
    """

    def __init__(self, pad: int, eos: int, paragraph_symbol: int):
        self.pad, self.eos, self.paragraph_symbol = pad, eos, paragraph_symbol
        self.lines: List[Tensor] = []  # of the open document, marks included
        self.layouts: Deque[DocumentLayout] = deque()

    def extend(self, lines: List[Tensor], context: bool, max_sentences: int, max_tokens: int) -> InteractiveDataset:
        """Returns the new lines as documents; an empty line (one token) ends one, ``<p>`` ends a paragraph.

        Args:
            lines: token tensors, each ending in end of sentence.
            context: False: every sentence stands alone.
            max_sentences, max_tokens: limits of a piece, 0: none.
        """
        carried = self.lines if context else []
        together = LinesInMemory([*carried, *lines])
        index = self._index(together)
        dataset = InteractiveDataset(
            together, None, index, self.pad, self.eos, max_sentences=max_sentences, max_tokens=max_tokens,
            with_context=context, layouts=self.layouts, carried=len(carried),
        )  # fmt: skip
        ends = [number for number, line in enumerate(together.lines) if len(line) == 1]
        self.lines = together.lines[ends[-1] + 1 :] if ends else together.lines
        self.layouts.clear()
        return dataset

    def _index(self, lines: LinesInMemory) -> DocumentIndex:
        marks = Marks.read(lines, self.paragraph_symbol)
        if (marks.document_end | marks.paragraph_end).all():  # only marks so far: no document
            empty = np.zeros(0, dtype=np.int32)
            return DocumentIndex(empty, np.zeros(1, dtype=np.int32), empty)
        marked = Marks(np.append(marks.document_end, True), np.append(marks.paragraph_end, False))
        return DocumentIndex.build(marked, "input")

    def layout_of(self, src_lengths: Tensor) -> DocumentLayout:
        """Returns the layout of the batch in hand, which must have the given lengths of sentences."""
        lengths = src_lengths.cpu().numpy()
        if not self.layouts or not np.array_equal(self.layouts[0].decoded_words.lengths, lengths):
            raise InputError("a batch without its documents: use --num-workers 0 and --data-buffer-size 0 here")
        return self.layouts.popleft()

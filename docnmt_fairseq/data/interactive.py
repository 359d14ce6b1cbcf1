"""Documents from lines that arrive in buffers (fairseq-interactive); the last document stays open."""

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.boundaries import MAX_LEVELS
from docnmt_fairseq.data.chunking import ChunkLimits
from docnmt_fairseq.data.dataset import DocumentDataset, Sample
from docnmt_fairseq.data.index import DocumentIndex, LinesInMemory, Marks, Split, index_of
from docnmt_fairseq.data.selected_context import TrainingSentences
from docnmt_fairseq.errors import InputError

History = List[List[Tensor]]  # translations of a document: one [m_t, w] per sentence and model


@dataclass(frozen=True)
class OpenBatch:
    """Data of a batch that fairseq-interactive does not store.

    Attributes:
        layout: layout of the batch.
        histories: previous translations of documents that continue from earlier lines, by number in the batch.
        stays_open: number of the document that later lines may continue, None if it is in another batch.
    """

    layout: DocumentLayout
    histories: Dict[int, History] = field(default_factory=dict)
    stays_open: Optional[int] = None


class Before(NamedTuple):
    """Counts of the lines of an open document that are no longer stored.

    Attributes:
        sentences: number of sentences.
        units: numbers of ended paragraphs, sections, ....
        levels: levels that the last of these lines ended; the next boundary ends only higher levels, since there is no
            sentence in between. All levels at the start.
    """

    sentences: int = 0
    units: Tuple[int, ...] = (0,) * MAX_LEVELS
    levels: int = MAX_LEVELS

    def and_line(self, levels: int) -> "Before":
        """Returns the counts with one more line that ends ``levels`` levels; 0: a sentence."""
        if not levels:
            return self._replace(sentences=self.sentences + 1, levels=0)
        units = tuple(ended + (self.levels <= level < levels) for level, ended in enumerate(self.units))
        return self._replace(units=units, levels=max(self.levels, levels))


NOTHING = Before()


class InteractiveDataset(DocumentDataset):
    """Dataset that stores the documents of its batches, since fairseq-interactive stores only tokens.

    Args:
        batches: queue to which they are appended, in order.
        carried: number of leading lines that were translated before and are context only.
        before: counts of the first document before the carried lines.
        history: translations of the carried lines.
        stays_open: whether the last document stays open.
    """

    def __init__(
        self,
        *args: Any,
        batches: Deque[OpenBatch],
        carried: int,
        before: Before,
        history: History,
        stays_open: bool,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self.batches = batches
        self.carried = carried
        self.before = before
        self.history = history
        self.stays_open = stays_open

    def __getitem__(self, number: int) -> Sample:
        sample = super().__getitem__(number)
        old = sample["ids"] < self.carried
        decoded = sample["decoded"].copy()
        decoded[np.flatnonzero(decoded)[old]] = False
        before = self.before if self.chunks.document[number] == 0 else NOTHING
        units = np.zeros((MAX_LEVELS, len(decoded)), dtype=np.int64)  # the number of levels differs between buffers
        units[: len(sample["unit_position"])] = sample["unit_position"]
        return {
            **sample,
            "number": number,
            "decoded": decoded,
            "ids": sample["ids"][~old] - self.carried,
            "sentence_position": sample["sentence_position"] + before.sentences,
            "unit_position": units + np.array(before.units)[:, None],
        }

    def decoded_sentences(self) -> np.ndarray:
        skipped, old = self.skipped, np.flatnonzero(self.index.items < self.carried)
        self.skipped = np.union1d(skipped, old)
        counts = super().decoded_sentences()
        self.skipped = skipped
        return counts

    def collater(self, samples: List[Sample]) -> Sample:
        batch = super().collater(samples)
        if batch:
            numbers = [sample["number"] for sample in samples if len(sample["ids"])]
            histories = {numbers.index(0): self.history} if 0 in numbers and self.history else {}
            last = len(self) - 1
            stays_open = numbers.index(last) if last in numbers and self.stays_open else None
            self.batches.append(OpenBatch(batch["net_input"]["layout"], histories, stays_open))
        return batch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return False  # fairseq would store every buffer


class OpenDocument:
    """Document that is being typed; its previous sentences are context for the next ones.

    Args:
        pad, eos: ids of the padding and the end-of-sentence symbol.
        paragraph_symbol: id of ``<p>``, None if the dictionary lacks it.
        similar: finds the most similar sentences, see :class:`~docnmt_fairseq.data.index.Split`.
        training_sentences: returns the random context of sentences, None if no model uses it.
    """

    def __init__(
        self,
        pad: int,
        eos: int,
        paragraph_symbol: Optional[int],
        similar: Callable[[LinesInMemory, DocumentIndex], Optional[np.ndarray]] = lambda lines, index: None,
        training_sentences: Callable[[], Optional[TrainingSentences]] = lambda: None,
    ):
        self.pad, self.eos, self.paragraph_symbol = pad, eos, paragraph_symbol
        self.similar, self.training_sentences = similar, training_sentences
        self.lines: List[Tensor] = []  # of the open document, including boundaries
        self.before = NOTHING
        self.batches: Deque[OpenBatch] = deque()
        self.history: History = []  # translations of its sentences at the end of the last batch

    def extend(self, lines: List[Tensor], context: bool, limits: ChunkLimits) -> InteractiveDataset:
        """Returns the new lines as documents; an empty line (one token) ends a document.

        Args:
            lines: token tensors with the end of sentence.
            context: False: sentences are translated without context.
            limits: limits of a chunk; the oldest sentences are dropped to keep them.
        """
        if not context:
            self.lines, self.before, self.history = [], NOTHING, []
        self._forget(lines, limits)
        together = LinesInMemory([*self.lines, *lines])
        self.batches.clear()
        carried = sum(not self._levels_ended(line) for line in self.lines)
        ends = [number for number, line in enumerate(together.lines) if len(line) == 1]
        index = index_of(together, self.paragraph_symbol)
        still_open = together.lines[ends[-1] + 1 :] if ends else together.lines
        dataset = InteractiveDataset(
            Split(together, None, index, similar=self.similar(together, index)), self.pad, self.eos, limits, context,
            batches=self.batches, carried=len(self.lines), before=self._before_first(together.lines),
            history=self.history[-carried:] if carried else [],
            stays_open=context and any(not self._levels_ended(line) for line in still_open),
            training_sentences=self.training_sentences(),
        )  # fmt: skip
        self.lines = still_open
        if ends:
            self.before, self.history = NOTHING, []
        return dataset

    def _forget(self, new: List[Tensor], limits: ChunkLimits) -> None:
        """Drops the oldest lines until the open document with the lines that continue it fits into one chunk."""
        ends = [number for number, line in enumerate(new) if len(line) == 1]
        continued = new[: ends[0]] if ends else new
        sentences = sum(not self._levels_ended(line) for line in [*self.lines, *continued])
        tokens = sum(len(line) for line in [*self.lines, *continued])
        while self.lines and (0 < limits.sentences < sentences or 0 < limits.tokens < tokens):
            line, *self.lines = self.lines
            tokens -= len(line)
            levels = self._levels_ended(line)
            sentences -= levels == 0
            self.before = self.before.and_line(levels)

    def _before_first(self, lines: List[Tensor]) -> Before:
        """Returns the counts before the first sentence of lines, updated by boundaries before it."""
        before = self.before
        for line in takewhile(lambda line: len(line) == 1 or self._levels_ended(line), lines):
            before = NOTHING if len(line) == 1 else before.and_line(self._levels_ended(line))
        return before

    def _levels_ended(self, line: Tensor) -> int:
        """Returns the number of levels that a line ends, 0 for a sentence."""
        return int(Marks.read(LinesInMemory([line]), self.paragraph_symbol).levels_ended[0])

    def batch_of(self, src_lengths: Tensor) -> OpenBatch:
        """Returns the documents of the current batch, which must have the given sentence lengths."""
        lengths = src_lengths.cpu().numpy()
        if not self.batches or not np.array_equal(self.batches[0].layout.decoded_tokens.lengths, lengths):
            raise InputError("batches arrived in another order; use --num-workers 0 and --data-buffer-size 0")
        return self.batches.popleft()

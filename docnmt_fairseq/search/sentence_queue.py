"""Queue of sentences to translate, which encodes batches on demand."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence

import numpy as np
from torch import Tensor

from docnmt_fairseq.search.steps import StepDecoder, Translated


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded batch.

    Attributes:
        sample: batch.
        encoded: state of the decoder for it.
        numbers: [rows] sentence ids, on the host.
        lengths: [rows] numbers of source tokens, on the host.
        later: for every row, the following rows of its document that wait for it.
    """

    sample: Dict[str, Any]
    encoded: Any
    numbers: np.ndarray
    lengths: np.ndarray
    later: List[List[int]]


@dataclass(frozen=True)
class QueuedSentence:
    """Sentence that is ready to be translated.

    Attributes:
        batch: its batch.
        row: its row in the batch.
        number: its id.
        source_tokens: number of source tokens with end of sentence that limits of the length refer to.
        prefix: [·] forced first tokens, or None.
        given: [·] tokens that later sentences see instead of its translation, or None.
    """

    batch: EncodedBatch
    row: int
    number: int
    source_tokens: int
    prefix: Optional[np.ndarray]
    given: Optional[Tensor]


class SentenceQueue:
    """Queue of the sentences of batches, sorted by length within a batch.

    Args:
        samples: batches, encoded on demand. None: none at present, but perhaps later.
        decoder: encodes them; if it looks back, a sentence waits for the previous one of its document.
        live: batches arrive continuously: all available ones are encoded, and their sentences alternate.
    """

    def __init__(self, samples: Iterator[Optional[Dict[str, Any]]], decoder: StepDecoder, live: bool = False):
        self.samples, self.decoder, self.live = samples, decoder, live
        self.ready: Deque[Deque[QueuedSentence]] = deque()  # by batch

    def take(self, count: int) -> List[QueuedSentence]:
        """Removes and returns up to ``count`` ready sentences of one batch."""
        while self.live or sum(map(len, self.ready)) < count:
            sample = next(self.samples, None)
            if sample is None:
                break
            if sample:
                self._encode(sample)
        taken: List[QueuedSentence] = []
        while self.ready and len(taken) < count and (not taken or self.ready[0][0].batch is taken[0].batch):
            taken.append(self.ready[0].popleft())
            if not self.ready[0]:
                self.ready.popleft()
        if self.live and self.ready and self.ready[0][0].batch is taken[0].batch:
            self.ready.rotate(-1)
        return taken

    def _encode(self, sample: Dict[str, Any]) -> None:
        numbers, lengths = (part.cpu().numpy() for part in (sample["id"], sample["net_input"]["src_lengths"]))
        later: List[List[int]] = [[] for _ in lengths]
        rows: Sequence[int] = np.argsort(-lengths, kind="stable").tolist()
        if self.decoder.looks_back:
            documents = sample["net_input"]["layout"].decoded_document
            first = np.flatnonzero(np.diff(documents, prepend=-1))
            for start, end in zip(first, [*first[1:], len(documents)]):
                later[start] = list(range(start + 1, end))
            rows = sorted(first.tolist(), key=lambda row: -len(later[row]))  # longest document first
        batch = EncodedBatch(sample, self.decoder.encode(sample), numbers, lengths, later)
        self.ready.append(deque(self._waiting(batch, row) for row in rows))

    @staticmethod
    def _waiting(batch: EncodedBatch, row: int) -> QueuedSentence:
        optional = (batch.sample.get(name) for name in ("prefixes", "target_context"))
        of_row = (None if of_rows is None else of_rows[row] for of_rows in optional)
        source_tokens = batch.sample.get("longest_source", int(batch.lengths[row]))
        return QueuedSentence(batch, row, int(batch.numbers[row]), source_tokens, *of_row)

    def finished(self, batch: EncodedBatch, translated: List[Translated]) -> None:
        """Stores translated sentences of a batch; the sentences after them become ready."""
        if not self.decoder.looks_back:
            return
        self.decoder.remember(batch.encoded, translated)
        for sentence in translated:
            later = batch.later[sentence.row]
            if later:
                following, *batch.later[later[0]] = later
                self.ready.appendleft(deque([self._waiting(batch, following)]))

"""The sentences that wait to be translated: batches are encoded when they are needed."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence

import numpy as np
from torch import Tensor

from docnmt_fairseq.search.steps import StepDecoder, Translated


@dataclass(frozen=True)
class EncodedBatch:
    """A batch that has been encoded.

    Attributes:
        sample: the batch.
        encoded: what the decoder keeps of it.
        numbers: [rows] ids of its sentences, on the host: one by one a GPU would be waited for with each.
        lengths: [rows] their source tokens, likewise.
        later: of every sentence, those of its document that follow and wait for it, in their order.
    """

    sample: Dict[str, Any]
    encoded: Any
    numbers: np.ndarray
    lengths: np.ndarray
    later: List[List[int]]


@dataclass(frozen=True)
class QueuedSentence:
    """A sentence that can be translated.

    Attributes:
        batch: that it is of.
        row: its number there.
        number: its id.
        source_tokens: that it has, its end included.
        prefix: [·] tokens that its translation begins with; None: it is free.
        corrected: [·] tokens that later sentences see in place of its translation; None: they see this.
    """

    batch: EncodedBatch
    row: int
    number: int
    source_tokens: int
    prefix: Optional[np.ndarray]
    corrected: Optional[Tensor]


class SentenceQueue:
    """The sentences of some batches, those of similar length side by side.

    Args:
        samples: the batches; as many are encoded as are needed. None: there is none now, but there may be later.
        decoder: encodes them; if it looks back, a sentence waits for the one before it in its document.
        live: whether batches come as they are made: all that are there are encoded, and take turns.
    """

    def __init__(self, samples: Iterator[Optional[Dict[str, Any]]], decoder: StepDecoder, live: bool = False):
        self.samples, self.decoder, self.live = samples, decoder, live
        self.ready: Deque[Deque[QueuedSentence]] = deque()  # by batch; of one that looks back, perhaps several times

    def take(self, count: int) -> List[QueuedSentence]:
        """Up to ``count`` sentences of one batch that are ready now."""
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
            rows = sorted(first.tolist(), key=lambda row: -len(later[row]))  # what takes longest begins first
        batch = EncodedBatch(sample, self.decoder.encode(sample), numbers, lengths, later)
        self.ready.append(deque(self._waiting(batch, row) for row in rows))

    @staticmethod
    def _waiting(batch: EncodedBatch, row: int) -> QueuedSentence:
        told = (batch.sample.get(name) for name in ("prefixes", "target_context"))
        of_row = (None if of_rows is None else of_rows[row] for of_rows in told)
        return QueuedSentence(batch, row, int(batch.numbers[row]), int(batch.lengths[row]), *of_row)

    def finished(self, sentences: List[QueuedSentence], translated: List[Translated]) -> None:
        """Sentences of one batch have been translated: those after them are ready."""
        if not self.decoder.looks_back:
            return
        batch = sentences[0].batch
        own = [(one.row, found) for one, found in zip(sentences, translated) if one.corrected is None]
        if own:
            self.decoder.remember(batch.encoded, *map(list, zip(*own)))
        corrected = [(one.row, one.corrected) for one in sentences if one.corrected is not None]
        if corrected:
            self.decoder.remember_corrected(batch.encoded, *map(list, zip(*corrected)))
        for sentence in sentences:
            later = batch.later[sentence.row]
            if later:
                following, *batch.later[later[0]] = later
                self.ready.appendleft(deque([self._waiting(batch, following)]))

"""Beam search with continuous batching: when a sentence is finished, the next one takes its slot.

Translations and scores equal those of ``fairseq-generate``, with three differences: the length limit a · x + b applies
to the tokens x of the sentence itself, not of the longest one in its batch; ``--no-repeat-ngram-size`` also works on
CPUs; candidates of equal score are ordered by hypothesis and token, not by PyTorch's ``topk``.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.search.beams import Beams, Candidates, Constraints
from docnmt_fairseq.search.candidates import Symbols, best, constrained, sampled
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.search.sampling_rng import SamplingRng
from docnmt_fairseq.search.sentence_queue import EncodedBatch, QueuedSentence, SentenceQueue
from docnmt_fairseq.search.steps import StepDecoder, Translated

IDLE = 8  # slots are dropped when one of so many is idle
NOTHING = np.zeros(0, dtype=np.int64)

Found = Tuple[QueuedSentence, List[Hypothesis]]


class SearchEngine:
    """Search engine.

    Args:
        decoder: step decoder of the models.
        options: search options.
        symbols: special symbols of the target dictionary.
        beam: number of hypotheses per sentence, less than the vocabulary size.
        positions: maximum number of target tokens of the models.
        slots: number of sentences that are translated in parallel.
        device: device of the models.
        begin: forced first tokens of sentences without a prefix.
    """

    def __init__(
        self,
        decoder: StepDecoder,
        options: SearchOptions,
        symbols: Symbols,
        beam: int,
        positions: int,
        slots: int,
        device: torch.device,
        begin: Sequence[int] = (),
    ):
        self.begin = np.array(begin, dtype=np.int64)
        self.decoder, self.options, self.symbols, self.positions = decoder, options, symbols, positions
        self.beam, self.most, self.device = beam, slots, device
        # Few rows are slow; many have more padding.
        self.prepared_together = max(1, slots // 4) if decoder.refills else slots

    @torch.no_grad()
    def run(
        self,
        samples: Iterator[Optional[Dict[str, Any]]],
        live: bool = False,
        sampling_keys: Optional[Mapping[int, Sequence[int]]] = None,
    ) -> Iterator[Found]:
        """Yields every sentence with its hypotheses, best first, when it is finished.

        Args:
            samples: batches, requested when there is room. None: none at present; the search continues with the current
                sentences, and ends if there are none. Optional ``prefixes`` are the forced first tokens [·] of each
                row, or None.
            live: see :class:`~docnmt_fairseq.search.sentence_queue.SentenceQueue`.
            sampling_keys: see :class:`~docnmt_fairseq.search.sampling_rng.SamplingRng`.
        """
        self.decoder.begin()
        queue, beams = SentenceQueue(samples, self.decoder, live), Beams(self.options, self.beam, self.symbols.eos)
        rng = SamplingRng(self.options.seed, self.beam, sampling_keys) if self.options.sampling else None
        slots, pool = Slots(self.decoder, beams, rng), Pool(self.decoder, queue, self.prepared_together)
        while True:
            self._fill(slots, pool)
            if not beams.busy.any():
                self.decoder.begin()
                return
            constraints = beams.constraints()
            logits = self.decoder.step(beams.written(), beams.steps)
            parents, finished = beams.advance(self._candidates(logits, beams, constraints, rng))
            self.decoder.reorder(parents)
            of_batches: Dict[int, List[Tuple[QueuedSentence, Translated]]] = defaultdict(list)
            for slot, hypotheses in finished.items():
                sentence = slots.release(slot)
                translated = Translated(hypotheses[0]["tokens"], slot, hypotheses[0]["made_by"])
                of_batches[id(sentence.batch)].append((sentence, translated))
                yield sentence, hypotheses[: self.options.nbest]
            for done in of_batches.values():
                queue.finished([sentence for sentence, _ in done], [translated for _, translated in done])

    def _candidates(
        self, logits: Tensor, beams: Beams, constraints: Constraints, rng: Optional[SamplingRng]
    ) -> Candidates:
        """Returns the candidates for the next tokens."""
        following = constrained(logits, constraints, self.symbols, self.options)
        totals = torch.from_numpy(beams.totals).to(self.device)
        if rng is None:
            return best(following, totals, self.beam)
        uniform = torch.from_numpy(rng.next(beams.steps)).to(self.device)
        return sampled(following, totals, uniform, self.options.sampling_topk, self.options.sampling_topp)

    def _fill(self, slots: "Slots", pool: "Pool") -> None:
        """Fills free slots with sentences; drops idle slots."""
        busy, refills = slots.beams.busy, self.decoder.refills
        if not refills and not busy.any():
            slots.keep(NOTHING)
        while refills or not slots.beams.busy.any():
            free = np.flatnonzero(~slots.beams.busy)
            room = len(free) + self.most - len(slots)
            joining = pool.take(room) if room else []
            if not joining:
                break
            numbers = slots.numbers_for(len(joining), free)
            pool.join(numbers)
            limits = [self.options.longest(sentence.source_tokens, self.positions) for sentence in joining]
            slots.admit(numbers, joining, limits, self.begin)
        slots.drop_idle()


@dataclass
class Slots:
    """Slots of the sentences in the search, synchronised over decoder, beams and random numbers.

    Attributes:
        decoder: step decoder.
        beams: hypotheses.
        rng: random numbers for sampling, or None.
        sentences: sentence of each slot; None: free.
    """

    decoder: StepDecoder
    beams: Beams
    rng: Optional[SamplingRng]
    sentences: List[Optional[QueuedSentence]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sentences)

    def numbers_for(self, count: int, free: np.ndarray) -> np.ndarray:
        """Returns slots for ``count`` sentences [count]: free ones, then new ones."""
        added = max(0, count - len(free))
        if added:
            self.beams.extend(added)
            self.sentences += [None] * added
        return np.concatenate([free, np.arange(len(self) - added, len(self))])[:count]

    def admit(
        self, numbers: np.ndarray, joining: Sequence[QueuedSentence], limits: Sequence[int], begin: np.ndarray
    ) -> None:
        """Starts sentences in slots.

        Args:
            numbers: [j] slots.
            joining: sentences.
            limits: maximum length of each translation.
            begin: forced first tokens of sentences without a prefix.
        """
        if self.rng is not None:
            self.rng.begin(numbers, [sentence.number for sentence in joining], len(self))
        for slot, sentence, limit in zip(numbers.tolist(), joining, limits):
            self.sentences[slot] = sentence
            self.beams.admit(slot, limit, begin if sentence.prefix is None else sentence.prefix)

    def release(self, slot: int) -> QueuedSentence:
        """Frees a slot, and returns its sentence."""
        sentence, self.sentences[slot] = self.sentences[slot], None
        assert sentence is not None
        return sentence

    def drop_idle(self) -> None:
        """Drops free slots if there are many."""
        busy = np.flatnonzero(self.beams.busy)
        if len(busy) and (len(self) - len(busy)) * IDLE >= len(self):
            self.keep(busy)

    def keep(self, numbers: np.ndarray) -> None:
        """Drops all slots but these."""
        if len(numbers) < len(self):
            self.beams.keep(numbers)
            self.sentences = [self.sentences[slot] for slot in numbers]
            self.decoder.keep(numbers)
            if self.rng is not None:
                self.rng.keep(numbers)


class Pool:
    """Sentences that are prepared together and join one after another.

    Args:
        decoder: step decoder.
        queue: queue of sentences.
        count: number of sentences prepared together.
    """

    def __init__(self, decoder: StepDecoder, queue: SentenceQueue, count: int):
        self.decoder, self.queue, self.count = decoder, queue, count
        self.sentences: List[QueuedSentence] = []
        self.prepared: Any = None
        self.first = self.taken = 0

    def take(self, room: int) -> List[QueuedSentence]:
        """Returns up to ``room`` sentences, which must join next."""
        if self.first == len(self.sentences):
            count = min(self.count, room) if self.decoder.looks_back else self.count
            self.sentences, self.first, self.prepared = self.queue.take(count), 0, None
            if self.sentences:
                batch: EncodedBatch = self.sentences[0].batch
                rows = np.array([sentence.row for sentence in self.sentences])
                self.prepared = self.decoder.prepare(batch.encoded, rows)
        self.taken = min(room, len(self.sentences) - self.first)
        return self.sentences[self.first : self.first + self.taken]

    def join(self, slots: np.ndarray) -> None:
        """Puts the sentences taken last into ``slots`` [j]."""
        self.decoder.join(self.prepared, np.arange(self.first, self.first + self.taken), slots)
        self.first += self.taken

"""Beam search over the sentences of many documents: when one is finished, the next takes its slot.

The translations and scores are those of ``fairseq-generate``, whose search has all sentences of a batch begin together
and the last ones go on alone. Three things differ: the limit a · x + b of a translation's length is of the tokens x of
the sentence itself, not of the longest one of its batch; no n-gram comes twice where that is wanted, also on a CPU,
where fairseq's search looks for them in the wrong place; and of exactly equal candidates the first are taken, by
hypothesis and token, where fairseq's search takes those that PyTorch's ``topk`` happens to find.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.search.beams import Beams, Candidates, Demands
from docnmt_fairseq.search.candidates import Symbols, allowed, best, drawn
from docnmt_fairseq.search.draws import Draws
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.search.sentence_queue import EncodedBatch, QueuedSentence, SentenceQueue
from docnmt_fairseq.search.steps import StepDecoder, Translated

IDLE = 8  # where nothing waits any more, slots are given up as soon as one of so many is free
NOTHING = np.zeros(0, dtype=np.int64)

Found = Tuple[QueuedSentence, List[Hypothesis]]


class SearchEngine:
    """A search.

    Args:
        decoder: the models.
        options: what is wanted.
        symbols: special ones of the target language.
        beam: hypotheses of a sentence; fewer than there are tokens.
        positions: target tokens that the models take.
        slots: sentences that are translated side by side.
        device: of the models.
        begin: tokens that every translation begins with, unless it has a prefix of its own.
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
        # So many are prepared together: products of few rows are slow, and the longest decides the padding.
        self.prepared_together = max(1, slots // 4) if decoder.refills else slots

    @torch.no_grad()
    def run(
        self,
        samples: Iterator[Optional[Dict[str, Any]]],
        live: bool = False,
        draw_keys: Optional[Mapping[int, Sequence[int]]] = None,
    ) -> Iterator[Found]:
        """Yields every sentence with its hypotheses, the best first, as they are finished.

        Args:
            samples: batches, asked for when there is room. None: there is none now; the search goes on with what is
                under way, and ends where that is nothing. Their ``prefixes``, if they have some, are by row the tokens
                [·] that its translation begins with, or None.
            live: see :class:`~docnmt_fairseq.search.sentence_queue.SentenceQueue`.
            draw_keys: see :class:`~docnmt_fairseq.search.draws.Draws`.
        """
        self.decoder.begin()
        queue, beams = SentenceQueue(samples, self.decoder, live), Beams(self.options, self.beam, self.symbols.eos)
        draws = Draws(self.options.seed, self.beam, draw_keys) if self.options.sampling else None
        slots, pool = Slots(self.decoder, beams, draws), Pool(self.decoder, queue, self.prepared_together)
        while True:
            self._fill(slots, pool)
            if not beams.busy.any():
                self.decoder.begin()
                return
            demands = beams.demands()
            logits = self.decoder.step(beams.written(), beams.steps)
            parents, finished = beams.advance(self._candidates(logits, beams, demands, draws))
            self.decoder.follow(parents)
            of_batches: Dict[int, List[Tuple[QueuedSentence, Translated]]] = defaultdict(list)
            for slot, hypotheses in finished.items():
                sentence = slots.release(slot)
                translated = Translated(hypotheses[0]["tokens"], slot, hypotheses[0]["made_by"])
                of_batches[id(sentence.batch)].append((sentence, translated))
                yield sentence, hypotheses[: self.options.nbest]
            for done in of_batches.values():
                queue.finished([sentence for sentence, _ in done], [translated for _, translated in done])

    def _candidates(self, logits: Tensor, beams: Beams, demands: Demands, draws: Optional[Draws]) -> Candidates:
        """What may follow the hypotheses."""
        following = allowed(logits, demands, self.symbols, self.options)
        totals = torch.from_numpy(beams.totals).to(self.device)
        if draws is None:
            return best(following, totals, self.beam)
        uniform = torch.from_numpy(draws.next(beams.steps)).to(self.device)
        return drawn(following, totals, uniform, self.options.sampling_topk, self.options.sampling_topp)

    def _fill(self, slots: "Slots", pool: "Pool") -> None:
        """Lets sentences join where slots are free; gives up slots that no sentence will have."""
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
        slots.give_up_idle()


@dataclass
class Slots:
    """Where sentences are translated side by side: what is kept of each in several places, under one number.

    Attributes:
        decoder: keeps the states of each.
        beams: its hypotheses.
        draws: its random numbers, if translations are drawn.
        sentences: which one it is; None: the slot is free.
    """

    decoder: StepDecoder
    beams: Beams
    draws: Optional[Draws]
    sentences: List[Optional[QueuedSentence]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sentences)

    def numbers_for(self, count: int, free: np.ndarray) -> np.ndarray:
        """Slots for ``count`` sentences [count]: those that are free, then new ones."""
        added = max(0, count - len(free))
        if added:
            self.beams.extend(added)
            self.sentences += [None] * added
        return np.concatenate([free, np.arange(len(self) - added, len(self))])[:count]

    def admit(
        self, numbers: np.ndarray, joining: Sequence[QueuedSentence], limits: Sequence[int], begin: np.ndarray
    ) -> None:
        """Sentences begin in slots.

        Args:
            numbers: [j] of the slots.
            joining: the sentences.
            limits: how many tokens each may become.
            begin: tokens that translations without a prefix of their own begin with.
        """
        if self.draws is not None:
            self.draws.begin(numbers, [sentence.number for sentence in joining], len(self))
        for slot, sentence, limit in zip(numbers.tolist(), joining, limits):
            self.sentences[slot] = sentence
            self.beams.admit(slot, limit, begin if sentence.prefix is None else sentence.prefix)

    def release(self, slot: int) -> QueuedSentence:
        """The sentence of a slot, which is free from now on."""
        sentence, self.sentences[slot] = self.sentences[slot], None
        assert sentence is not None
        return sentence

    def give_up_idle(self) -> None:
        """Gives up free slots where they are many."""
        busy = np.flatnonzero(self.beams.busy)
        if len(busy) and (len(self) - len(busy)) * IDLE >= len(self):
            self.keep(busy)

    def keep(self, numbers: np.ndarray) -> None:
        """Keeps these slots alone."""
        if len(numbers) < len(self):
            self.beams.keep(numbers)
            self.sentences = [self.sentences[slot] for slot in numbers]
            self.decoder.keep(numbers)
            if self.draws is not None:
                self.draws.keep(numbers)


class Pool:
    """Sentences that are prepared together and join one after another.

    Args:
        decoder: prepares them.
        queue: where they wait.
        count: how many are prepared together.
    """

    def __init__(self, decoder: StepDecoder, queue: SentenceQueue, count: int):
        self.decoder, self.queue, self.count = decoder, queue, count
        self.sentences: List[QueuedSentence] = []
        self.prepared: Any = None
        self.first = self.taken = 0

    def take(self, room: int) -> List[QueuedSentence]:
        """The next sentences, ``room`` at most; they are to join at once."""
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
        """Those that were taken last join, in ``slots`` [j]."""
        self.decoder.join(self.prepared, np.arange(self.first, self.first + self.taken), slots)
        self.first += self.taken

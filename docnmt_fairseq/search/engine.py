"""Beam search over the sentences of many documents: when one is finished, the next takes its slot.

The translations and scores are those of ``fairseq-generate``, whose search has all sentences of a batch begin together
and the last ones go on alone. Three things differ: the limit a · x + b of a translation's length is of the tokens x of
the sentence itself, not of the longest one of its batch; no n-gram comes twice where that is wanted, also on a CPU,
where fairseq's search looks for them in the wrong place; and of exactly equal candidates the first are taken, by
hypothesis and token, where fairseq's search takes those that PyTorch's ``topk`` happens to find.
"""

from collections import defaultdict
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.search.agenda import Agenda, EncodedBatch, Waiting
from docnmt_fairseq.search.beams import Beams, Candidates, Demands
from docnmt_fairseq.search.candidates import Symbols, allowed, best, drawn
from docnmt_fairseq.search.draws import Draws
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.search.steps import StepDecoder, Translated

IDLE = 8  # where nothing waits any more, slots are given up as soon as one of so many is free
NOTHING = np.zeros(0, dtype=np.int64)

Found = Tuple[Waiting, List[Hypothesis]]


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
            live: see :class:`~docnmt_fairseq.search.agenda.Agenda`.
            draw_keys: see :class:`~docnmt_fairseq.search.draws.Draws`.
        """
        self.decoder.begin()
        agenda, beams = Agenda(samples, self.decoder, live), Beams(self.options, self.beam, self.symbols.eos)
        draws = Draws(self.options.seed, self.beam, draw_keys) if self.options.sampling else None
        sentences: List[Optional[Waiting]] = []
        pool = Pool(self.decoder, agenda, self.prepared_together)
        while True:
            self._fill(beams, sentences, pool, draws)
            if not beams.busy.any():
                self.decoder.begin()
                return
            demands = beams.demands()
            logits = self.decoder.step(beams.written(), beams.steps)
            parents, finished = beams.advance(self._candidates(logits, beams, demands, draws))
            self.decoder.follow(parents)
            of_batches: Dict[int, List[Tuple[Waiting, Translated]]] = defaultdict(list)
            for slot, hypotheses in finished.items():
                sentence, sentences[slot] = sentences[slot], None
                assert sentence is not None
                translated = Translated(hypotheses[0]["tokens"], slot, hypotheses[0]["made_by"])
                of_batches[id(sentence.batch)].append((sentence, translated))
                yield sentence, hypotheses[: self.options.nbest]
            for done in of_batches.values():
                agenda.finished([sentence for sentence, _ in done], [translated for _, translated in done])

    def _candidates(self, logits: Tensor, beams: Beams, demands: Demands, draws: Optional[Draws]) -> Candidates:
        """What may follow the hypotheses."""
        following = allowed(logits, demands, self.symbols, self.options)
        totals = torch.from_numpy(beams.totals).to(self.device)
        if draws is None:
            return best(following, totals, self.beam)
        uniform = torch.from_numpy(draws.next(beams.steps)).to(self.device)
        return drawn(following, totals, uniform, self.options.sampling_topk, self.options.sampling_topp)

    def _fill(
        self,
        beams: Beams,
        sentences: List[Optional[Waiting]],
        pool: "Pool",
        draws: Optional[Draws],
    ) -> None:
        """Lets sentences join where slots are free; gives up slots that no sentence will have."""
        if not self.decoder.refills and beams.busy.any():
            self._keep_busy(beams, sentences, draws)
            return
        if not self.decoder.refills:
            self._keep(NOTHING, beams, sentences, draws)
        while True:
            free = np.flatnonzero(~beams.busy)
            room = len(free) + self.most - len(beams)
            joining = pool.take(room) if room else []
            if not joining:
                break
            added = max(0, len(joining) - len(free))
            if added:
                beams.extend(added)
                sentences += [None] * added
            slots = np.concatenate([free, np.arange(len(beams) - added, len(beams))])[: len(joining)]
            pool.join(slots)
            if draws is not None:
                draws.begin(slots, [sentence.number for sentence in joining], len(beams))
            for slot, sentence in zip(slots.tolist(), joining):
                sentences[slot] = sentence
                limit = self.options.longest(sentence.source_tokens, self.positions)
                beams.admit(slot, limit, self.begin if sentence.prefix is None else sentence.prefix)
            if not self.decoder.refills:
                break
        self._keep_busy(beams, sentences, draws)

    def _keep_busy(self, beams: Beams, sentences: List[Optional[Waiting]], draws: Optional[Draws]) -> None:
        busy = np.flatnonzero(beams.busy)
        if len(busy) and (len(beams) - len(busy)) * IDLE >= len(beams):
            self._keep(busy, beams, sentences, draws)

    def _keep(
        self, slots: np.ndarray, beams: Beams, sentences: List[Optional[Waiting]], draws: Optional[Draws]
    ) -> None:
        if len(slots) < len(beams):
            beams.keep(slots)
            sentences[:] = [sentences[slot] for slot in slots]
            self.decoder.keep(slots)
            if draws is not None:
                draws.keep(slots)


class Pool:
    """Sentences that are prepared together and join one after another.

    Args:
        decoder: prepares them.
        agenda: where they wait.
        count: how many are prepared together.
    """

    def __init__(self, decoder: StepDecoder, agenda: Agenda, count: int):
        self.decoder, self.agenda, self.count = decoder, agenda, count
        self.sentences: List[Waiting] = []
        self.prepared: Any = None
        self.first = self.taken = 0

    def take(self, room: int) -> List[Waiting]:
        """The next sentences, ``room`` at most; they are to join at once."""
        if self.first == len(self.sentences):
            count = min(self.count, room) if self.decoder.looks_back else self.count
            self.sentences, self.first, self.prepared = self.agenda.take(count), 0, None
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

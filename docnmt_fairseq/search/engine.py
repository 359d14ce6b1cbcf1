"""Beam search with continuous batching: when a sentence is finished, the next one takes its slot.

:class:`SearchEngine` is the entry point: built for models, it translates batches. Translations and scores equal those
of fairseq's search, with three differences: the length limit a · x + b applies to the tokens x of the sentence itself,
unless the batch says otherwise; ``--no-repeat-ngram-size`` also works on CPUs; candidates of equal score are ordered by
hypothesis and token, unless ``fairseq_ties``.
"""

from collections import defaultdict
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from torch import Tensor

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.layers.packed_linear import FLOAT32, pack_linears
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from docnmt_fairseq.models.transformer.stock import of_stock
from docnmt_fairseq.search.beams import Beams, Candidates, Constraints
from docnmt_fairseq.search.candidates import SamplingRng, best, constrained, sampled
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.search.sentence_queue import QueuedSentence, SentenceQueue
from docnmt_fairseq.search.steps import EnsembleSteps, IncrementalSteps, StepDecoder, Translated
from docnmt_fairseq.search.transformer_steps import TransformerSteps

# Hypotheses decoded in parallel: enough for fast matrix products, few enough for the caches.
ON_CPU, ON_GPU = 256, 4096
IDLE = 8  # slots are dropped when one of so many is idle


class SearchEngine:
    """Search engine of a model or an ensemble; on a CPU it packs the linear layers of the models.

    Args:
        models: models in evaluation mode, on their device.
        dictionary: target dictionary.
        options: search options.
        hypotheses: maximum number of hypotheses decoded in parallel; None: by device.
        precision: precision of linear layers on a CPU, see :mod:`docnmt_fairseq.layers.packed_linear`.
        begin: forced first tokens of sentences without a prefix.
        fixed: the parameters do not change any more: linear layers are packed, fairseq's Transformers converted.
        fairseq_ties: on a CPU, candidates of equal score are ordered as by fairseq's search.

    Attributes:
        decoder: step decoder of the models.
        beam: number of hypotheses per sentence, less than the vocabulary size.
        max_sentences: number of sentences that are translated in parallel.
    """

    def __init__(
        self,
        models: Sequence[BaseFairseqModel],
        dictionary: Dictionary,
        options: SearchOptions,
        hypotheses: Optional[int] = None,
        precision: str = FLOAT32,
        begin: Sequence[int] = (),
        fixed: bool = True,
        fairseq_ties: bool = False,
    ):
        self.fixed = fixed
        self.dictionary, self.options, self.begin = dictionary, options, np.array(begin, dtype=np.int64)
        self.device = next(models[0].parameters()).device
        self.positions = min(model.max_decoder_positions() for model in models)
        self.beam = min(options.beam, len(dictionary) - 1)  # as in fairseq, without padding
        most = hypotheses or (ON_CPU if self.device.type == "cpu" else ON_GPU)
        self.max_sentences = max(1, most // self.beam)
        self.fairseq_ties = fairseq_ties and self.device.type == "cpu"
        decoders = [self._step_decoder((fixed and of_stock(model)) or model, precision) for model in models]
        self.decoder = decoders[0] if len(decoders) == 1 else EnsembleSteps(decoders)
        # Few rows are slow; many have more padding.
        self.prepared_together = max(1, self.max_sentences // 4) if self.decoder.refills else self.max_sentences

    def _step_decoder(self, model: BaseFairseqModel, precision: str) -> StepDecoder:
        if self.fixed:
            pack_linears(model, precision)
        if isinstance(model, DocumentTransformer):
            return TransformerSteps(model, self.beam, self.options.temperature, self.device, precision)
        return IncrementalSteps(model, self.beam, self.options.temperature, self.device)

    @torch.no_grad()
    def run(
        self,
        samples: Iterator[Optional[Dict[str, Any]]],
        live: bool = False,
        sampling_keys: Optional[Mapping[int, Sequence[int]]] = None,
    ) -> Iterator[Tuple[QueuedSentence, List[Hypothesis]]]:
        """Yields every sentence with its hypotheses, best first, when it is finished.

        Args:
            samples: batches, requested when there is room. None: none at present; the search continues with the current
                sentences, and ends if there are none. Optional ``prefixes`` are the forced first tokens [·] of each
                row, or None; ``longest_source`` is the number of source tokens for the length limits of all rows.
            live: see :class:`~docnmt_fairseq.search.sentence_queue.SentenceQueue`.
            sampling_keys: see :class:`~docnmt_fairseq.search.candidates.SamplingRng`.
        """
        self.decoder.begin()
        queue = SentenceQueue(samples, self.decoder, live)
        rng = SamplingRng(self.options.seed, self.beam, sampling_keys) if self.options.sampling else None
        slots = Slots(self, queue, rng)
        beams = slots.beams
        while True:
            slots.fill()
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
                translated = Translated(sentence.row, slot, hypotheses[0]["made_by"], sentence.given)
                of_batches[id(sentence.batch)].append((sentence, translated))
                yield sentence, hypotheses[: self.options.nbest]
            for done in of_batches.values():
                queue.finished(done[0][0].batch, [translated for _, translated in done])

    def _candidates(
        self, logits: Tensor, beams: Beams, constraints: Constraints, rng: Optional[SamplingRng]
    ) -> Candidates:
        following = constrained(logits, constraints, self.dictionary, self.options)
        totals = torch.from_numpy(beams.totals).to(self.device)
        if rng is None:
            return best(*following, totals, self.beam, beams.steps if self.fairseq_ties else None)
        uniform = torch.from_numpy(rng.next(beams.steps)).to(self.device)
        return sampled(*following, totals, uniform, self.options.sampling_topk, self.options.sampling_topp)


class Slots:
    """Slots of the sentences in a search, synchronised over step decoder, beams and random numbers.

    Args:
        engine: the engine.
        queue: queue of sentences.
        rng: random numbers for sampling, or None.
    """

    def __init__(self, engine: SearchEngine, queue: SentenceQueue, rng: Optional[SamplingRng]):
        self.engine, self.decoder, self.queue, self.rng = engine, engine.decoder, queue, rng
        self.beams = Beams(engine.options, engine.beam, engine.dictionary.eos())
        self.sentences: List[Optional[QueuedSentence]] = []  # of each slot; None: free
        self.pool: List[QueuedSentence] = []  # sentences prepared together, which join one after another
        self.prepared: Any = None
        self.joined = 0  # sentences of the pool

    def fill(self) -> None:
        """Fills free slots with sentences; drops idle slots."""
        beams, refills = self.beams, self.decoder.refills
        if not refills and not beams.busy.any():
            self._keep(np.zeros(0, dtype=np.int64))
        while refills or not beams.busy.any():
            free = np.flatnonzero(~beams.busy)
            room = len(free) + self.engine.max_sentences - len(beams)
            if room and self.joined == len(self.pool):
                self._prepare(room)
            count = min(room, len(self.pool) - self.joined)
            if not count:
                break
            self._join(count, free)
        busy = np.flatnonzero(beams.busy)
        if len(busy) and (len(beams) - len(busy)) * IDLE >= len(beams):
            self._keep(busy)

    def _prepare(self, room: int) -> None:
        """Prepares the next sentences of one batch."""
        count = self.engine.prepared_together
        self.pool, self.joined = self.queue.take(min(count, room) if self.decoder.looks_back else count), 0
        if self.pool:
            rows = np.array([sentence.row for sentence in self.pool])
            self.prepared = self.decoder.prepare(self.pool[0].batch.encoded, rows)

    def _join(self, count: int, free: np.ndarray) -> None:
        """Puts the next ``count`` sentences of the pool into free slots, then new ones."""
        beams, options = self.beams, self.engine.options
        added = max(0, count - len(free))
        if added:
            beams.extend(added)
            self.sentences += [None] * added
        slots = np.concatenate([free, np.arange(len(beams) - added, len(beams))])[:count]
        places = np.arange(self.joined, self.joined + count)
        self.decoder.join(self.prepared, places, slots)
        joining = self.pool[self.joined : self.joined + count]
        self.joined += count
        if self.rng is not None:
            self.rng.begin(slots, [sentence.number for sentence in joining], len(beams))
        for slot, sentence in zip(slots.tolist(), joining):
            self.sentences[slot] = sentence
            limit = options.longest(sentence.source_tokens, self.engine.positions)
            beams.admit(slot, limit, self.engine.begin if sentence.prefix is None else sentence.prefix)

    def release(self, slot: int) -> QueuedSentence:
        """Frees a slot, and returns its sentence."""
        sentence, self.sentences[slot] = self.sentences[slot], None
        assert sentence is not None
        return sentence

    def _keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        if len(slots) < len(self.beams):
            self.beams.keep(slots)
            self.sentences = [self.sentences[slot] for slot in slots]
            self.decoder.keep(slots)
            if self.rng is not None:
                self.rng.keep(slots)

"""The layout of one document: which sentence does what, and which earlier sentence decides it."""

import random
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from docnmt_fairseq.corpus.synth.options import SynthOptions


@dataclass
class Slot:
    """The job of one sentence: its role and, for an undecidable word, the place of the deciding sentence."""

    role: str = "filler"
    decider: int = -1


@dataclass
class Plan:
    """One document: its sentences' jobs, and the places at which its paragraphs open."""

    slots: List[Slot]
    openings: List[int]

    def places(self, role: str) -> List[int]:
        """The places of the sentences with ``role``, in order."""
        return [place for place, slot in enumerate(self.slots) if slot.role == role]

    def is_free(self, place: int) -> bool:
        """Whether the sentence is in the document and has no job yet."""
        return 0 <= place < len(self.slots) and self.slots[place].role == "filler"


class DistanceDeck:
    """Deals every distance equally often over a corpus: what does not fit one document waits for the next.

    Drawing anew after a misfit would favour short distances, which fit more often. A deck holds less than three rounds,
    so the numbers of cases at two distances differ by a bounded amount however large the corpus.
    """

    def __init__(self, rng: random.Random, options: SynthOptions) -> None:
        self._rng = rng
        self._round = list(range(options.min_distance, options.max_distance + 1))
        self._waiting: List[int] = []

    def deal(self) -> Iterator[int]:
        """Yields the waiting distances, longest waiting first, each once."""
        while len(self._waiting) < 2 * len(self._round):
            self._waiting += self._rng.sample(self._round, len(self._round))
        return iter(dict.fromkeys(self._waiting))

    def take(self, distance: int) -> None:
        """Removes a distance that found its place."""
        self._waiting.remove(distance)


class Planner:
    """Lays out the documents of one split."""

    def __init__(self, options: SynthOptions, rng: random.Random) -> None:
        self._options = options
        self._rng = rng
        self._decks: Dict[str, DistanceDeck] = {kind: DistanceDeck(rng, options) for kind in options.kinds}

    def plan(self) -> Plan:
        """The next document's layout, with undecidable words in as many sentences as distances allow."""
        plan = self._frame()
        open_kinds = list(self._options.kinds)
        while open_kinds:
            self._rng.shuffle(open_kinds)
            open_kinds = [kind for kind in open_kinds if self._place(plan, kind)]
        return plan

    def _frame(self) -> Plan:
        """A layout with the deciding sentences only: paragraph openings, topic, introductions."""
        options, rng = self._options, self._rng
        count = rng.randint(*options.sentences_per_document)
        paragraphs = count // (options.max_distance + 1)
        spare = sorted(rng.randint(0, count % (options.max_distance + 1)) for _ in range(paragraphs - 1))
        openings = [0] + [(i + 1) * (options.max_distance + 1) + extra for i, extra in enumerate(spare)]
        plan = Plan([Slot() for _ in range(count)], openings)
        for place in openings:
            plan.slots[place].role = "opening"
        if "ambiguous" in options.kinds:  # early enough for the longest distance
            plan.slots[self._draw(plan, count - options.max_distance)].role = "topic"
        if "pronoun" in options.kinds:
            self._introduce(plan, options.introductions, count - options.max_distance // 2)
        return plan

    def _introduce(self, plan: Plan, count: int, end: int) -> None:
        """Draws the sentences that introduce nouns: runs of up to three, so that even a near noun has rivals nearer."""
        while count > 0:
            start = self._draw(plan, end)
            for place in range(start, min(start + 3, end)):
                if count == 0 or not plan.is_free(place):
                    break
                plan.slots[place].role = "introduction"
                count -= 1

    def _draw(self, plan: Plan, end: int) -> int:
        return self._rng.choice([place for place in range(end) if plan.is_free(place)])

    def _place(self, plan: Plan, kind: str) -> bool:
        """Whether one more word of ``kind`` found a sentence."""
        deck = self._decks[kind]
        for distance in deck.deal():
            spot = self._find(plan, kind, distance)
            if spot is not None:
                place, decider = spot
                plan.slots[place] = Slot(kind, decider)
                deck.take(distance)
                return True
        return False

    def _find(self, plan: Plan, kind: str, distance: int) -> Optional[Tuple[int, int]]:
        """A free place and its deciding sentence ``distance`` before, or None."""
        if kind == "pronoun":
            deciders = plan.places("introduction")
        elif kind == "ambiguous":
            deciders = plan.places("topic")
        else:
            deciders = plan.openings
        spots = [(place + distance, place) for place in deciders if plan.is_free(place + distance)]
        if kind == "formality":  # its own paragraph's opening, which is the last one before it
            spots = [spot for spot in spots if not any(spot[1] < opening < spot[0] for opening in plan.openings)]
        if not spots:
            return None
        if kind != "pronoun":
            return self._rng.choice(spots)
        # Rather a noun with others in between, and never the only noun so far: nearness must not do.
        spots = [spot for spot in spots if spot[0] > deciders[1]]
        rivals = [sum(spot[1] < other < spot[0] for other in deciders) for spot in spots]
        return self._rng.choices(spots, [1 + 3 * count for count in rivals])[0] if spots else None

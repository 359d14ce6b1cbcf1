"""Documents of artificial sentences: a plan of roles and deciding sentences, then the words.

A sentence is a subject, a verb, an optional place, then fillers; the target language puts the verb last and an
article before a noun. Everything but the form of an undecidable subject follows from the source sentence: verb,
place, fillers and length are drawn independently of the answer. Genders, formalities and topics are drawn
independently, so that one deciding sentence carries no information about another.
"""

import random
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from docnmt_fairseq.corpus.synth.language import FORMALITIES, GENDERS, Lexicon, SynthOptions, build_lexicon


@dataclass
class Slot:
    """Role of one sentence and, for an undecidable word, the position of the deciding sentence."""

    role: str = "filler"
    decider: int = -1


@dataclass
class Plan:
    """Plan of one document: roles of its sentences, and the positions at which its paragraphs begin."""

    slots: List[Slot]
    openings: List[int]

    def places(self, role: str) -> List[int]:
        """Returns the positions of the sentences with a role, in order."""
        return [place for place, slot in enumerate(self.slots) if slot.role == role]

    def is_free(self, place: int) -> bool:
        """Returns True if a position is in the document and has no role yet."""
        return 0 <= place < len(self.slots) and self.slots[place].role == "filler"


class Planner:
    """Plans the documents of one split."""

    def __init__(self, options: SynthOptions, rng: random.Random) -> None:
        self._options = options
        self._rng = rng
        self._distances = range(options.min_distance, options.max_distance + 1)
        self._waiting: Dict[str, List[int]] = {kind: [] for kind in options.kinds}  # distances of the next words

    def plan(self) -> Plan:
        """Returns the next plan, with undecidable words in as many sentences as possible."""
        plan = self._frame()
        open_kinds = list(self._options.kinds)
        while open_kinds:
            self._rng.shuffle(open_kinds)
            open_kinds = [kind for kind in open_kinds if self._place(plan, kind)]
        return plan

    def _frame(self) -> Plan:
        """Returns a plan with the deciding sentences only: openings of paragraphs, topic, introductions."""
        options, rng = self._options, self._rng
        count = rng.randint(*options.sentences_per_document)
        paragraphs = count // (options.max_distance + 1)
        spare = sorted(rng.randint(0, count % (options.max_distance + 1)) for _ in range(paragraphs - 1))
        openings = [0] + [(i + 1) * (options.max_distance + 1) + extra for i, extra in enumerate(spare)]
        plan = Plan([Slot() for _ in range(count)], openings)
        for place in openings:
            plan.slots[place].role = "opening"
        if "ambiguous" in options.kinds:  # early enough for the maximum distance
            plan.slots[self._draw(plan, count - options.max_distance)].role = "topic"
        if "pronoun" in options.kinds:
            self._introduce(plan, options.introductions, count - options.max_distance // 2)
        return plan

    def _introduce(self, plan: Plan, count: int, end: int) -> None:
        """Draws the sentences that introduce nouns, in runs of up to three, so that near nouns have nearer rivals."""
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
        """Adds one more word of a kind; returns False if there is no position for it.

        Distances that do not fit into a document wait for the next one, since rejecting them would favour short ones.
        Less than three rounds wait, so that the numbers of cases of two distances differ by a bounded amount.
        """
        waiting = self._waiting[kind]
        while len(waiting) < 2 * len(self._distances):
            waiting += self._rng.sample(self._distances, len(self._distances))
        for distance in dict.fromkeys(waiting):
            spot = self._find(plan, kind, distance)
            if spot is not None:
                place, decider = spot
                plan.slots[place] = Slot(kind, decider)
                waiting.remove(distance)
                return True
        return False

    def _find(self, plan: Plan, kind: str, distance: int) -> Optional[Tuple[int, int]]:
        """Returns a free position and its deciding sentence ``distance`` before, or None."""
        if kind == "pronoun":
            deciders = plan.places("introduction")
        elif kind == "ambiguous":
            deciders = plan.places("topic")
        else:
            deciders = plan.openings
        spots = [(place + distance, place) for place in deciders if plan.is_free(place + distance)]
        if kind == "formality":  # the opening of its own paragraph
            spots = [spot for spot in spots if not any(spot[1] < opening < spot[0] for opening in plan.openings)]
        if not spots:
            return None
        if kind != "pronoun":
            return self._rng.choice(spots)
        # Prefers nouns with others in between, and never the only noun so far, so that the nearest noun is often wrong.
        spots = [spot for spot in spots if spot[0] > deciders[1]]
        rivals = [sum(spot[1] < other < spot[0] for other in deciders) for spot in spots]
        return self._rng.choices(spots, [1 + 3 * count for count in rivals])[0] if spots else None


@dataclass(frozen=True)
class Case:
    """One target word that its sentence does not determine.

    ``id`` is the sample id of the sentence in fairseq, its line number from 0; ``position`` the position of the word in
    the target sentence, from 0; ``distance`` the number of sentences back to the deciding one.
    """

    id: int
    position: int
    kind: str
    distance: int
    right: str
    wrong: Tuple[str, ...]
    source_word: str


@dataclass
class Sentence:
    """A sentence in both languages, and its undecidable word (``case.id`` is its position in the document)."""

    source: List[str]
    target: List[str]
    case: Optional[Case] = None


@dataclass
class Document:
    """Sentences, and the positions of those that begin a paragraph."""

    sentences: List[Sentence]
    openings: List[int]


def documents(options: SynthOptions, split: str) -> Iterator[Document]:
    """Yields the documents of a split; splits share only the lexicon."""
    rng = random.Random(f"{options.seed}/{split}")
    planner = Planner(options, rng)
    lexicon = build_lexicon(options)
    for _ in range(getattr(options, f"{split}_documents")):
        yield _Writer(options, lexicon, rng, planner.plan()).write()


class _Writer:
    """Writer of one document: draws the content of its deciding sentences, then fills the slots."""

    def __init__(self, options: SynthOptions, lexicon: Lexicon, rng: random.Random, plan: Plan) -> None:
        self._options, self._lexicon, self._rng, self._plan = options, lexicon, rng, plan
        self._topic = rng.choice(list(lexicon.topics))
        self._formality = {place: rng.choice(FORMALITIES) for place in plan.openings}
        introductions = plan.places("introduction")
        self._noun = dict(zip(introductions, self._draw_nouns(len(introductions))))
        self._place = dict(zip(introductions, rng.sample(list(lexicon.places), len(introductions))))

    def _draw_nouns(self, count: int) -> List[str]:
        """Returns nouns with independently drawn genders that are not all equal.

        With evenly distributed genders, a model that attends to all nouns equally, like an untrained one, would get no
        gradient towards attending to nouns.
        """
        genders = [self._rng.choice(GENDERS) for _ in range(count)]
        while count > 1 and len(set(genders)) == 1:
            genders = [self._rng.choice(GENDERS) for _ in range(count)]
        by_gender: Dict[str, List[str]] = {gender: [] for gender in GENDERS}
        for noun, gender in self._lexicon.genders.items():
            by_gender[gender].append(noun)
        return [self._rng.choice(by_gender[gender]) for gender in genders]

    def write(self) -> Document:
        """Returns the document."""
        return Document([self._sentence(*slot) for slot in enumerate(self._plan.slots)], self._plan.openings)

    def _sentence(self, place: int, slot: Slot) -> Sentence:
        lexicon = self._lexicon
        if slot.role == "opening":
            return self._ordinary(lexicon.greetings[self._formality[place]])
        if slot.role == "topic":
            return self._ordinary(lexicon.topics[self._topic])
        if slot.role == "filler":
            return self._ordinary(lexicon.names)
        if slot.role == "introduction":
            noun = self._noun[place]
            subject = [lexicon.articles[lexicon.genders[noun]], lexicon.nouns[noun]]
            return self._compose(noun, subject, self._place[place])
        return self._undecidable(place, slot)

    def _undecidable(self, place: int, slot: Slot) -> Sentence:
        lexicon, shared = self._lexicon, None
        if slot.role == "pronoun":
            word, forms = lexicon.pronoun, lexicon.pronoun_forms
            right = forms[lexicon.genders[self._noun[slot.decider]]]
            shared = self._place[slot.decider]
        elif slot.role == "ambiguous":
            word = self._rng.choice(list(lexicon.ambiguous))
            forms = lexicon.ambiguous[word]
            right = forms[self._topic]
        else:
            word, forms = lexicon.you, lexicon.you_forms
            right = forms[self._formality[slot.decider]]
        sentence = self._compose(word, [right], shared)
        wrong = tuple(sorted(set(forms.values()) - {right}))
        sentence.case = Case(place, 0, slot.role, place - slot.decider, right, wrong, word)
        return sentence

    def _ordinary(self, subjects: Mapping[str, str]) -> Sentence:
        word = self._rng.choice(list(subjects))
        return self._compose(word, [subjects[word]], None)

    def _compose(self, subject: str, translation: List[str], place: Optional[str]) -> Sentence:
        lexicon, places = self._lexicon, [] if place is None else [place]
        words = self._rng.randint(*self._options.words_per_sentence) - 2 - len(places)
        verb, fillers = self._rng.choice(list(lexicon.verbs)), self._rng.sample(list(lexicon.fillers), words)
        target = [*translation, *(lexicon.places[word] for word in places)]
        target += [*(lexicon.fillers[word] for word in fillers), lexicon.verbs[verb]]
        return Sentence([subject, verb, *places, *fillers], target)

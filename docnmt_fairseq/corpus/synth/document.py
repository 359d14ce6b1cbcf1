"""Puts words to a plan: one pair of sentences a slot.

A sentence is a subject, a verb, perhaps a place, then fillers; the target language puts its verb last and an article
before a noun. Everything but the subject's undecidable form follows from the source sentence. Nothing in a sentence is
drawn with regard to an answer: verb, place, fillers and length are drawn alike whatever the deciding sentence says.
Genders, formalities and topics are drawn each by itself, so that one deciding sentence tells nothing of another.
"""

import random
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from docnmt_fairseq.corpus.synth.lexicon import FORMALITIES, GENDERS, Lexicon, build_lexicon
from docnmt_fairseq.corpus.synth.options import SynthOptions
from docnmt_fairseq.corpus.synth.plan import Plan, Planner, Slot
from docnmt_fairseq.corpus.synth.table import Case


@dataclass
class Sentence:
    """A sentence in both languages, and its undecidable word (``case.id`` is its place in the document)."""

    source: List[str]
    target: List[str]
    case: Optional[Case] = None


@dataclass
class Document:
    """Sentences, and the places of those that open a paragraph."""

    sentences: List[Sentence]
    openings: List[int]


def documents(options: SynthOptions, split: str) -> Iterator[Document]:
    """Yields the documents of a split, one at a time; splits share the lexicon and nothing else."""
    rng = random.Random(f"{options.seed}/{split}")
    planner = Planner(options, rng)
    lexicon = build_lexicon(options)
    for _ in range(getattr(options, f"{split}_documents")):
        yield _Writer(options, lexicon, rng, planner.plan()).write()


class _Writer:
    """Writes one document: first draws what its deciding sentences say, then goes through its slots."""

    def __init__(self, options: SynthOptions, lexicon: Lexicon, rng: random.Random, plan: Plan) -> None:
        self._options, self._lexicon, self._rng, self._plan = options, lexicon, rng, plan
        self._topic = rng.choice(list(lexicon.topics))
        self._formality = {place: rng.choice(FORMALITIES) for place in plan.openings}
        introductions = plan.places("introduction")
        self._noun = dict(zip(introductions, self._draw_nouns(len(introductions))))
        self._place = dict(zip(introductions, rng.sample(list(lexicon.places), len(introductions))))

    def _draw_nouns(self, count: int) -> List[str]:
        """Nouns of genders that are drawn each by itself, except that they are not all alike.

        Genders shared evenly within a document would be harder than they look: whoever attends to all nouns alike, as
        an untrained model does, would then learn nothing from them, not even that nouns are what to look for.
        """
        genders = [self._rng.choice(GENDERS) for _ in range(count)]
        while count > 1 and len(set(genders)) == 1:
            genders = [self._rng.choice(GENDERS) for _ in range(count)]
        by_gender: Dict[str, List[str]] = {gender: [] for gender in GENDERS}
        for noun, gender in self._lexicon.genders.items():
            by_gender[gender].append(noun)
        return [self._rng.choice(by_gender[gender]) for gender in genders]

    def write(self) -> Document:
        sentences = [self._sentence(place, slot) for place, slot in enumerate(self._plan.slots)]
        return Document(sentences, self._plan.openings)

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
        verb, fillers = self._draw_rest(place)
        places = [] if place is None else [place]
        lexicon = self._lexicon
        target = [*translation, *(lexicon.places[word] for word in places)]
        target += [*(lexicon.fillers[word] for word in fillers), lexicon.verbs[verb]]
        return Sentence([subject, verb, *places, *fillers], target)

    def _draw_rest(self, place: Optional[str]) -> Tuple[str, List[str]]:
        words = self._rng.randint(*self._options.words_per_sentence) - (2 if place is None else 3)
        return self._rng.choice(list(self._lexicon.verbs)), self._rng.sample(list(self._lexicon.fillers), words)

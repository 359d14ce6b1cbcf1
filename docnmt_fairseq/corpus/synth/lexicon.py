"""Two invented vocabularies and the rules between them."""

import itertools
import random
from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterator, List

from docnmt_fairseq.corpus.synth.options import SynthOptions

GENDERS = ("first", "second", "third")
FORMALITIES = ("formal", "informal")


@dataclass(frozen=True)
class Lexicon:
    """Source word → target word, and the tables that decide what a sentence alone does not.

    Every word has one role, and no word belongs to both languages.
    """

    nouns: Dict[str, str]
    genders: Dict[str, str]
    articles: Dict[str, str]
    pronoun: str
    pronoun_forms: Dict[str, str]
    places: Dict[str, str]
    verbs: Dict[str, str]
    fillers: Dict[str, str]
    names: Dict[str, str]
    topics: Dict[str, Dict[str, str]]
    ambiguous: Dict[str, Dict[str, str]]
    greetings: Dict[str, Dict[str, str]]
    you: str
    you_forms: Dict[str, str]

    def to_json(self) -> Dict[str, Any]:
        """The tables as plain dictionaries: ``genders`` by source noun, ``ambiguous`` by word, then topic."""
        return asdict(self)


def build_lexicon(options: SynthOptions) -> Lexicon:
    """The languages of ``options``: they depend on the seed and the numbers of types, not on the documents."""
    rng = random.Random(f"{options.seed}/lexicon")
    source = _invent(rng, "ptkmnlrsv", "aeiou", "")
    target = _invent(rng, "bdgfzhjw", "aeiou", "nsxt")

    def pairs(count: int) -> Dict[str, str]:
        return {next(source): next(target) for _ in range(count)}

    nouns = pairs(options.nouns)
    noun_genders = [GENDERS[i % 3] for i in range(options.nouns)]
    rng.shuffle(noun_genders)
    topics = {str(topic): pairs(options.topic_words) for topic in range(options.topics)}
    return Lexicon(
        nouns=nouns,
        genders=dict(zip(nouns, noun_genders)),
        articles={gender: next(target) for gender in GENDERS},
        pronoun=next(source),
        pronoun_forms={gender: next(target) for gender in GENDERS},
        places=pairs(options.places),
        verbs=pairs(options.verbs),
        fillers=pairs(options.fillers),
        names=pairs(options.names),
        topics=topics,
        ambiguous={next(source): _senses(rng, list(topics), 2 + i % 2, target) for i in range(options.ambiguous_words)},
        greetings={formality: pairs(options.greetings) for formality in FORMALITIES},
        you=next(source),
        you_forms={formality: next(target) for formality in FORMALITIES},
    )


def _senses(rng: random.Random, topics: List[str], count: int, words: Iterator[str]) -> Dict[str, str]:
    """The translation under each topic; every one of the ``count`` translations has equally many topics."""
    forms = [next(words) for _ in range(count)]
    drawn = [forms[i % count] for i in range(len(topics))]
    rng.shuffle(drawn)
    return dict(zip(topics, drawn))


def _invent(rng: random.Random, consonants: str, vowels: str, endings: str) -> Iterator[str]:
    """Yields distinct pronounceable words, of two syllables while they last, then of more."""
    syllables = ["".join(pair) for pair in itertools.product(consonants, vowels)]
    for length in itertools.count(2):
        words = ["".join(parts) for parts in itertools.product(syllables, repeat=length)]
        rng.shuffle(words)
        for word in words:
            yield word + (rng.choice(endings) if endings else "")

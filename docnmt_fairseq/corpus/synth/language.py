"""Options of artificial corpora, and the two artificial vocabularies with the rules between them."""

import itertools
import random
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Iterator, List, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

KINDS = ("pronoun", "ambiguous", "formality")


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class SynthOptions:
    """Options of one artificial corpus, which they determine byte for byte."""

    seed: int = _setting(1, "seed of the languages and documents")
    train_documents: int = _setting(2000, "documents of the train split")
    valid_documents: int = _setting(50, "documents of the valid split")
    test_documents: int = _setting(200, "documents of the test split")
    source_lang: str = _setting("src", "suffix of the source files")
    target_lang: str = _setting("tgt", "suffix of the target files")
    kinds: Tuple[str, ...] = _setting(KINDS, f"kinds of undecidable words, of {', '.join(KINDS)}")
    min_distance: int = _setting(1, "minimum distance of an undecidable word from its deciding sentence, in sentences")
    max_distance: int = _setting(12, "maximum distance; distances are uniform")
    sentences_per_document: Tuple[int, int] = _setting((26, 30), "minimum and maximum sentences of a document")
    words_per_sentence: Tuple[int, int] = _setting((5, 7), "minimum and maximum source words of a sentence")
    introductions: int = _setting(6, "sentences of a document that introduce a noun, a possible antecedent of pronouns")
    nouns: int = _setting(18, "noun types, a multiple of 3 (three genders)")
    places: int = _setting(12, "place types; a place ties a pronoun to its noun")
    verbs: int = _setting(12, "verb types")
    fillers: int = _setting(24, "filler types")
    names: int = _setting(6, "name types, subjects of other sentences")
    topics: int = _setting(6, "topics, a multiple of 6 (so that 2 and 3 senses are equally frequent)")
    topic_words: int = _setting(1, "words per topic that name it")
    ambiguous_words: int = _setting(4, "ambiguous words, alternately with 2 and 3 senses")
    greetings: int = _setting(3, "greetings per formality, which open a paragraph")

    def __post_init__(self) -> None:
        for name in ("train_documents", "valid_documents", "test_documents", "min_distance", "nouns", "places"):
            self._require(getattr(self, name) >= 1, name, "must be at least 1")
        for name in ("verbs", "names", "topics", "topic_words", "ambiguous_words", "greetings"):
            self._require(getattr(self, name) >= 1, name, "must be at least 1")
        for name in ("sentences_per_document", "words_per_sentence"):
            low, high = getattr(self, name)
            self._require(low <= high, name, "its second number must not be below its first")
        self._require(bool(self.kinds) and set(self.kinds) <= set(KINDS), "kinds", f"choose from {', '.join(KINDS)}")
        for name in ("source_lang", "target_lang"):  # they are file suffixes
            message = "must not contain dots, slashes or white space"
            self._require(re.fullmatch(r"[^\s./]+", getattr(self, name)) is not None, name, message)
        self._require(self.source_lang != self.target_lang, "target_lang", "must differ from --source-lang")
        self._require(self.max_distance >= self.min_distance, "max_distance", "must not be below --min-distance")
        # Formality needs two paragraphs, each longer than the maximum distance; otherwise a topic and an introduction
        # must fit before the maximum distance.
        shortest = 2 * (self.max_distance + 1) if "formality" in self.kinds else self.max_distance + 4
        self._require(
            self.sentences_per_document[0] >= shortest,
            "sentences_per_document",
            f"must start at {shortest} or more for --max-distance {self.max_distance}, or lower that",
        )
        self._require(self.nouns % 3 == 0, "nouns", "must be a multiple of 3")
        self._require(self.topics % 6 == 0, "topics", "must be a multiple of 6")
        self._require(self.words_per_sentence[0] >= 4, "words_per_sentence", "must start at 4 or more")
        self._require(self.fillers >= self.words_per_sentence[1], "fillers", "must reach the words of a sentence")
        if "pronoun" in self.kinds:
            for name in ("places", "max_distance"):
                self._require(getattr(self, name) >= 2, name, "must be at least 2, or leave pronouns out of --kinds")
            low, high = self.sentences_per_document
            room = min(n - self.max_distance // 2 - n // (self.max_distance + 1) for n in range(low, high + 1))
            most = min(self.places, self.max_distance, room - ("ambiguous" in self.kinds))
            message = f"must be from 2 to {most}, the least of --places, --max-distance and the room in a document"
            self._require(2 <= self.introductions <= most, "introductions", message)

    def _require(self, holds: bool, name: str, message: str) -> None:
        if not holds:
            value = getattr(self, name)
            shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
            raise InputError(f"{flag_of(name)} {shown}: {message}")


GENDERS = ("first", "second", "third")
FORMALITIES = ("formal", "informal")


@dataclass(frozen=True)
class Lexicon:
    """Source word → target word, and the tables that determine undecidable words.

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
        """Returns the tables as plain dictionaries: ``genders`` by source noun, ``ambiguous`` by word, then topic."""
        return asdict(self)


def build_lexicon(options: SynthOptions) -> Lexicon:
    """Returns the lexicon, which depends on the seed and the numbers of types, not on the documents."""
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
    """Returns the translation for each topic; each of the ``count`` translations has the same number of topics."""
    forms = [next(words) for _ in range(count)]
    drawn = [forms[i % count] for i in range(len(topics))]
    rng.shuffle(drawn)
    return dict(zip(topics, drawn))


def _invent(rng: random.Random, consonants: str, vowels: str, endings: str) -> Iterator[str]:
    """Yields distinct pronounceable words of two syllables, then of more."""
    syllables = ["".join(pair) for pair in itertools.product(consonants, vowels)]
    for length in itertools.count(2):
        words = ["".join(parts) for parts in itertools.product(syllables, repeat=length)]
        rng.shuffle(words)
        for word in words:
            yield word + (rng.choice(endings) if endings else "")

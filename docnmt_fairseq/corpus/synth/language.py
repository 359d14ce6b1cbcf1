"""Options of artificial corpora, and the two artificial vocabularies with the rules between them."""

import itertools
import random
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple

from docnmt_fairseq.errors import refuse
from docnmt_fairseq.options import CheckedOptions, option

KINDS = ("pronoun", "ambiguous", "formality")
RANGE: Dict[str, Any] = {"nargs": 2, "metavar": ("MIN", "MAX")}


@dataclass(frozen=True)
class SynthOptions(CheckedOptions):
    """Options of one artificial corpus, which they determine byte for byte."""

    seed: int = option(1, "seed of the languages and documents")
    train_documents: int = option(2000, "documents of the train split", minimum=1)
    valid_documents: int = option(50, "documents of the valid split", minimum=1)
    test_documents: int = option(200, "documents of the test split", minimum=1)
    source_lang: str = option("src", "suffix of the source files", metavar="SUFFIX")
    target_lang: str = option("tgt", "suffix of the target files", metavar="SUFFIX")
    kinds: Tuple[str, ...] = option(KINDS, f"kinds of undecidable words, of {', '.join(KINDS)}", metavar="KIND")
    min_distance: int = option(
        1, "minimum distance of an undecidable word from its deciding sentence, in sentences", minimum=1
    )
    max_distance: int = option(12, "maximum distance; distances are uniform")
    sentences_per_document: Tuple[int, int] = option((26, 30), "minimum and maximum sentences of a document", **RANGE)
    words_per_sentence: Tuple[int, int] = option((5, 7), "minimum and maximum source words of a sentence", **RANGE)
    introductions: int = option(6, "sentences of a document that introduce a noun, a possible antecedent of pronouns")
    nouns: int = option(18, "noun types, a multiple of 3 (three genders)", minimum=1)
    places: int = option(12, "place types; a place ties a pronoun to its noun", minimum=1)
    verbs: int = option(12, "verb types", minimum=1)
    fillers: int = option(24, "filler types")
    names: int = option(6, "name types, subjects of other sentences", minimum=1)
    topics: int = option(6, "topics, a multiple of 6 (so that 2 and 3 senses are equally frequent)", minimum=1)
    topic_words: int = option(1, "words per topic that name it", minimum=1)
    ambiguous_words: int = option(4, "ambiguous words, alternately with 2 and 3 senses", minimum=1)
    greetings: int = option(3, "greetings per formality, which open a paragraph", minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse(self._conflicts())

    def _conflicts(self) -> Iterator[str]:
        """Yields the problems that would make a corpus impossible."""
        longest, (shortest, most) = self.max_distance, self.sentences_per_document
        if not self.kinds or not set(self.kinds) <= set(KINDS):
            yield f"--kinds {' '.join(self.kinds)}: choose from {', '.join(KINDS)}"
        for language in (self.source_lang, self.target_lang):
            if not re.fullmatch(r"[^\s./]+", language):
                yield f"--source-lang, --target-lang {language}: a file suffix without dots, slashes and white space"
        if self.source_lang == self.target_lang:
            yield f"--target-lang {self.target_lang}: must differ from --source-lang"
        if longest < self.min_distance:
            yield f"--max-distance {longest}: must not be below --min-distance"
        # Formality needs two paragraphs, each longer than the maximum distance; otherwise a topic and an introduction
        # must fit before the maximum distance.
        needed = 2 * (longest + 1) if "formality" in self.kinds else longest + 4
        if not needed <= shortest <= most:
            yield f"--sentences-per-document {shortest} {most}: from {needed} or more, for --max-distance {longest}"
        if not 4 <= self.words_per_sentence[0] <= self.words_per_sentence[1] <= self.fillers:
            yield "--words-per-sentence: from 4 or more to at most the number of --fillers"
        if self.nouns % 3 or self.topics % 6:
            yield "--nouns must be a multiple of 3, --topics a multiple of 6"
        if "pronoun" in self.kinds and shortest <= most:
            room = min(n - longest // 2 - n // (longest + 1) for n in range(shortest, most + 1))
            largest = min(self.places, longest, room - ("ambiguous" in self.kinds))
            if not 2 <= self.introductions <= largest:
                yield (
                    f"--introductions {self.introductions}: must be from 2 to {largest}, the least of --places, "
                    "--max-distance and the room in a document; or leave pronouns out of --kinds"
                )


GENDERS = ("first", "second", "third")
FORMALITIES = ("formal", "informal")


@dataclass(frozen=True)
class Lexicon:
    """Source word → target word, and the tables that determine undecidable words.

    Every word has one role, and no word belongs to both languages. ``genders`` is by source noun, ``ambiguous`` by
    source word, then topic.
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

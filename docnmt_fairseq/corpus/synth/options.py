"""What can be set about the artificial languages and their documents."""

import re
from dataclasses import dataclass, field
from typing import Any, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

KINDS = ("pronoun", "ambiguous", "formality")


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class SynthOptions:
    """The settings of one artificial corpus; the same settings and seed give the same bytes.

    Raises:
        InputError: a setting, or a combination of settings, is impossible; names the option.
    """

    seed: int = _setting(1, "fixes the languages and every document")
    train_documents: int = _setting(2000, "documents of the train split")
    valid_documents: int = _setting(50, "documents of the valid split")
    test_documents: int = _setting(200, "documents of the test split")
    source_lang: str = _setting("src", "suffix of the source files")
    target_lang: str = _setting("tgt", "suffix of the target files")
    kinds: Tuple[str, ...] = _setting(KINDS, f"undecidable words to write, of {', '.join(KINDS)}")
    min_distance: int = _setting(1, "sentences from an undecidable word back to the sentence that decides it, least")
    max_distance: int = _setting(12, "the same, most; distances are drawn evenly between the two")
    sentences_per_document: Tuple[int, int] = _setting((26, 30), "least and most sentences of a document")
    words_per_sentence: Tuple[int, int] = _setting((5, 7), "least and most source words of a sentence")
    introductions: int = _setting(6, "sentences of a document that introduce a noun a pronoun may stand for")
    nouns: int = _setting(18, "noun types, a multiple of 3 (three genders)")
    places: int = _setting(12, "place types; a place ties a pronoun to its noun")
    verbs: int = _setting(12, "verb types")
    fillers: int = _setting(24, "filler types")
    names: int = _setting(6, "name types, the subjects of ordinary sentences")
    topics: int = _setting(6, "topics, a multiple of 6 (so that 2 and 3 senses come equally often)")
    topic_words: int = _setting(1, "words that name a topic, for each")
    ambiguous_words: int = _setting(4, "ambiguous words, by turns of 2 and of 3 senses")
    greetings: int = _setting(3, "greetings that open a formal paragraph; as many an informal one")

    def __post_init__(self) -> None:
        for name in ("train_documents", "valid_documents", "test_documents", "min_distance", "nouns", "places"):
            self._require(getattr(self, name) >= 1, name, "must be at least 1")
        for name in ("verbs", "names", "topics", "topic_words", "ambiguous_words", "greetings"):
            self._require(getattr(self, name) >= 1, name, "must be at least 1")
        for name in ("sentences_per_document", "words_per_sentence"):
            low, high = getattr(self, name)
            self._require(low <= high, name, "its second number must not be below its first")
        self._require(bool(self.kinds) and set(self.kinds) <= set(KINDS), "kinds", f"choose from {', '.join(KINDS)}")
        for name in ("source_lang", "target_lang"):  # or files would be in other folders, or one in another's place
            message = "must be a name without dots, slashes and white space, as names of files end with it"
            self._require(re.fullmatch(r"[^\s./]+", getattr(self, name)) is not None, name, message)
        self._require(self.source_lang != self.target_lang, "target_lang", "must differ from --source-lang")
        self._require(self.max_distance >= self.min_distance, "max_distance", "must not be below --min-distance")
        # Formality: two paragraphs at least, each long enough for the longest distance to its opening. Otherwise there
        # must be room for a topic and an introduction before the longest distance.
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
            # Beyond the distance they leave no room for other sentences; openings and the topic stand among them.
            low, high = self.sentences_per_document
            room = min(n - self.max_distance // 2 - n // (self.max_distance + 1) for n in range(low, high + 1))
            most = min(self.places, self.max_distance, room - ("ambiguous" in self.kinds))
            message = f"must be from 2 to {most}, the least of --places, --max-distance and the room in a document"
            self._require(2 <= self.introductions <= most, "introductions", message)
        else:
            unset = self.introductions == type(self).introductions
            self._require(unset, "introductions", "has no effect, as --kinds leaves pronouns out; leave it out")

    def _require(self, holds: bool, name: str, message: str) -> None:
        if not holds:
            value = getattr(self, name)
            shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
            raise InputError(f"{flag_of(name)} {shown}: {message}")

"""Pronouns of translations: F1 against the reference, and accuracy at marked sentences.

The F1 is similar to AutoPRF (Hardmeier and Federico 2010) and APT (Miculicich Werlen and Popescu-Belis 2017) without
word alignment: pronouns of the target language match anywhere in the sentence.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream, read_labels, segments
from docnmt_fairseq.evaluation.words import WORD, may_begin_sentence, words_of
from docnmt_fairseq.options import option

GERMAN = ("er", "sie", "es", "ihn", "ihm", "ihr", "ihnen")
SEINE = ("seine", "seinem", "seinen", "seiner", "seines")
IHRE = ("ihre", "ihrem", "ihren", "ihrer", "ihres")
RUSSIAN = ("он", "она", "оно", "они", "его", "её", "ее", "ему", "ей", "им", "их", "ими", "ею")
AFTER_PREPOSITIONS = ("него", "неё", "нее", "нему", "ней", "ним", "них", "ними", "нею", "нём", "нем")

# Third person by language, without forms that mostly are another word: articles (French le, la, les, Spanish la, lo,
# los, las), and German sein, the verb.
PRONOUNS: Dict[str, Tuple[str, ...]] = {
    "de": (*GERMAN, *SEINE, *IHRE),
    "en": ("he", "she", "it", "they", "him", "her", "them", "his", "hers", "its", "their", "theirs"),
    "es": ("él", "ella", "ello", "ellos", "ellas", "le", "les", "su", "sus", "suyo", "suya", "suyos", "suyas"),
    "fr": ("il", "elle", "ils", "elles", "lui", "leur", "leurs", "eux", "son", "sa", "ses"),
    "ru": (*RUSSIAN, *AFTER_PREPOSITIONS),
}
# Second person if capitalised within a sentence: Sie, Ihnen, Ihr, Ihre.
POLITE: Dict[str, FrozenSet[str]] = {"de": frozenset(("sie", "ihnen", "ihr", *IHRE))}
LANGUAGES = ", ".join(PRONOUNS)


@dataclass(frozen=True)
class PronounF1Options(MetricOptions):
    """Options of pronoun F1."""

    pronouns: str = option(
        "", f"comma-separated words, or a language for its third person: {LANGUAGES}", metavar="WORDS"
    )


@METRICS.register("pronoun-f1")
class PronounF1(Metric):
    """F1 of a set of words against the first reference.

    Case is ignored, except for the third person of German: capitalised Sie, Ihnen and Ihr count only where a sentence
    may begin, since elsewhere they are the polite second person.
    """

    title = "pronoun F1"
    help = "F1 of the pronouns of each sentence, with --pronouns"
    Options = PronounF1Options
    options: PronounF1Options
    enabled_by = "pronouns"
    scores_documents = False

    def __init__(self, test_set: References, options: PronounF1Options):
        super().__init__(test_set, options)
        self.words = parse_words(options.pronouns)
        self.polite: FrozenSet[str] = POLITE.get(options.pronouns, frozenset())
        if not any(self._counts(sentence) for sentence in segments(test_set.streams[0])):
            raise InputError(f"--pronouns {options.pronouns}: none of these words is in {test_set.files[0]}")

    def segment_statistics(self, translation: str, references: Sequence[str]) -> List[float]:
        """Numbers of matching pronouns, of those in the translation, and of those in the reference."""
        found, wanted = self._counts(translation), self._counts(references[0])
        return [float(counts.total()) for counts in (found & wanted, found, wanted)]

    def score(self, sums: Sequence[float]) -> float:
        """F1 in percent."""
        return super().score([2 * sums[0], sums[1] + sums[2]])

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature with the treatment of case."""
        return super().format_signature({"case": "mixed" if self.polite else "lc", **details})

    def _counts(self, sentence: str) -> "Counter[str]":
        found: Counter[str] = Counter()
        for match in WORD.finditer(sentence):
            word = match[0].lower()
            capital = word in self.polite and match[0][0].isupper()
            if word in self.words and not (capital and not may_begin_sentence(sentence, match.start())):
                found[word] += 1
        return found


def parse_words(given: str) -> FrozenSet[str]:
    """Words of the option ``--pronouns``."""
    return frozenset(PRONOUNS[given] if given in PRONOUNS else words_of(given))


class AccuracyByPronoun(Metric):
    """Percentage of correct pronouns among those of a list, with the accuracy of each class of pronouns (``parts``)."""

    scores_documents = False

    def row(self, judged: Iterable[Tuple[str, bool]]) -> List[float]:
        """Statistics of a sentence from class and correctness of its listed pronouns: correct, all, both by class."""
        counts = [0.0] * (2 + 2 * len(self.parts))
        for name, correct in judged:
            place = 2 + 2 * self.parts.index(name)
            for column in (0, place):
                counts[column] += correct
                counts[column + 1] += 1
        return counts

    def part_scores(self, sums: Sequence[float]) -> Dict[str, float]:
        """Accuracy of each listed class in percent."""
        pairs = dict(zip(self.parts, zip(sums[2::2], sums[3::2])))
        return {name: self.score(pair) for name, pair in pairs.items() if pair[1]}


FORMS = {
    "he": ("he", "him", "his", "himself"),
    "she": ("she", "her", "hers", "herself"),
    "it": ("it", "its", "itself"),
    "they": ("they", "them", "their", "theirs", "themselves"),
}
PRONOUN_OF = {form: pronoun for pronoun, forms in FORMS.items() for form in forms}


@dataclass(frozen=True)
class PronounOptions(MetricOptions):
    """Options of pronoun accuracy."""

    marks: str = option(
        "",
        f"rows LINE<TAB>PRONOUN ({', '.join(FORMS)}), lines of the reference from 0, empty ones included",
        metavar="FILE",
        by_line=True,
    )


@METRICS.register("pronouns")
class Pronouns(AccuracyByPronoun):
    """Percentage of marked sentences whose first third-person pronoun in English is the marked one, in any form.

    A translation without a third-person pronoun is wrong. Recall is reported for each pronoun.
    """

    title = "pronouns"
    help = "correct first third-person pronoun in English, of the sentences in --marks"
    Options = PronounOptions
    options: PronounOptions
    enabled_by = "marks"
    parts: ClassVar[Tuple[str, ...]] = tuple(FORMS)

    def __init__(self, test_set: References, options: PronounOptions):
        super().__init__(test_set, options)
        self.marks = read_labels(Path(options.marks), test_set, list(FORMS))

    def statistics(self, translation: Stream) -> Statistics:
        """Correct and marked pronouns of each sentence, in total and by pronoun."""
        return [
            self.row([] if mark is None else [(mark, first_pronoun(text) == mark)])
            for text, mark in zip(segments(translation), self.marks)
        ]


def first_pronoun(sentence: str) -> Optional[str]:
    """Returns the first third-person pronoun of an English sentence as one of ``FORMS``; None without one."""
    return next((PRONOUN_OF[word] for word in words_of(sentence) if word in PRONOUN_OF), None)

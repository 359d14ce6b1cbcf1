"""Pronouns that a translation shares with its reference, by sentence.

As AutoPRF (Hardmeier and Federico 2010) and APT (Miculicich Werlen and Popescu-Belis 2017), but without word
alignments: words are looked for in the target language, anywhere in the sentence.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, percent
from docnmt_fairseq.evaluation.pronouns import POLITE, PRONOUNS
from docnmt_fairseq.evaluation.texts import References, segments
from docnmt_fairseq.evaluation.words import WORD, may_begin_sentence, words_of
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class PronounOptions(MetricOptions):
    """Which words."""

    pronouns: Optional[str] = option(
        None,
        f"words with commas between, or the third person of a language: {', '.join(PRONOUNS)}",
        metavar="WORDS",
    )


@METRICS.register("pronouns")
class Pronouns(Metric):
    """F1 of some words: how many a translation has beside its reference, each as often as both have it.

    It reads one reference, the first. Case does not matter, but for the third person of German: Sie, Ihnen and Ihr with
    a capital are counted only where a sentence may begin, since elsewhere they are the polite second person. Where a
    resample has none of the words, the score is 0.

    Raises:
        InputError: no words are given, what is given is no word, or the reference has none of them.
    """

    title = "pronouns"
    help = "F1 of the pronouns of each sentence, with --pronouns"
    Options = PronounOptions
    options: PronounOptions
    asked_by = "pronouns"
    joins_documents = False

    def __init__(self, test_set: References, options: PronounOptions):
        super().__init__(test_set, options)
        self.words = pronouns_of(options.pronouns)
        self.polite: FrozenSet[str] = POLITE.get(options.pronouns or "", frozenset())
        if not any(self._counts(sentence) for sentence in segments(test_set.streams[0])):
            raise InputError(f"--pronouns {options.pronouns}: {test_set.files[0]} has none of these words")

    def segment_statistics(self, translation: str, references: Sequence[str]) -> List[float]:
        """Pronouns of both, of the translation, of the reference."""
        found, wanted = self._counts(translation), self._counts(references[0])
        return [float(sum(counts.values())) for counts in (found & wanted, found, wanted)]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return percent(2 * sums[0], sums[1] + sums[2])

    def signed(self, details: Dict[str, object]) -> str:
        """See :meth:`Metric.signed`."""
        return super().signed({"case": "mixed" if self.polite else "lc", **details})

    def _counts(self, sentence: str) -> "Counter[str]":
        found: Counter[str] = Counter()
        for match in WORD.finditer(sentence):
            word = match[0].lower()
            capital = word in self.polite and match[0][0].isupper()
            if word in self.words and not (capital and not may_begin_sentence(sentence, match.start())):
                found[word] += 1
        return found


def pronouns_of(given: Optional[str]) -> FrozenSet[str]:
    """The words that ``--pronouns`` names.

    Raises:
        InputError: it is not given, or names no words.
    """
    known = ", ".join(PRONOUNS)
    if given is None:
        raise InputError(f"--metrics pronouns: which ones? Give --pronouns WORD,WORD,... or a language: {known}")
    if given in PRONOUNS:
        return frozenset(PRONOUNS[given])
    words = [word.strip().lower() for word in given.split(",") if word.strip()]
    for word in words:
        if words_of(word) != [word]:
            raise InputError(f"--pronouns {given}: {word!r} is no single word of letters; commas stand between words")
    if not words:
        raise InputError(f"--pronouns {given}: no words; give them with commas between, or a language: {known}")
    return frozenset(words)

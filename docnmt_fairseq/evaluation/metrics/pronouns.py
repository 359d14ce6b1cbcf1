"""Accuracy of English pronouns at marked sentences, such as those whose source leaves the pronoun out."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Dict, List, Optional, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream, read_labels, segments
from docnmt_fairseq.evaluation.words import words_of
from docnmt_fairseq.options import option

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

    marks: Optional[str] = option(
        None,
        f"rows LINE<TAB>PRONOUN ({', '.join(FORMS)}), lines of the reference from 0, empty ones included",
        metavar="FILE",
        by_line=True,
    )


@METRICS.register("pronouns")
class Pronouns(Metric):
    """Percentage of marked sentences whose first third-person pronoun in English is the marked one, in any form.

    A translation without a third-person pronoun is wrong. Recall is reported for each pronoun.
    """

    title = "pronouns"
    help = "correct first third-person pronoun in English, of the sentences in --marks"
    Options = PronounOptions
    options: PronounOptions
    enabled_by = "marks"
    scores_documents = False
    parts: ClassVar[Tuple[str, ...]] = tuple(FORMS)

    def __init__(self, test_set: References, options: PronounOptions):
        super().__init__(test_set, options)
        if options.marks is None:
            raise InputError("pronouns: requires --marks FILE")
        self.marks = read_labels(Path(options.marks), test_set, list(FORMS))
        if not any(self.marks):
            raise InputError(f"{options.marks}: no marks")

    def statistics(self, translation: Stream) -> Statistics:
        """0 or 1 for each sentence: correct and marked, then the same for each of ``FORMS``."""
        return list(map(_row, segments(translation), self.marks))

    def part_scores(self, sums: Sequence[float]) -> Dict[str, float]:
        """Recall of each pronoun in percent."""
        return {name: self.score(sums[2 + 2 * place :]) for place, name in enumerate(FORMS)}


def _row(translation: str, mark: Optional[str]) -> List[float]:
    correct = float(mark is not None and first_pronoun(translation) == mark)
    row = [correct, float(mark is not None)]
    for name in FORMS:
        row += [correct, 1.0] if name == mark else [0.0, 0.0]
    return row


def first_pronoun(sentence: str) -> Optional[str]:
    """Returns the first third-person pronoun of an English sentence as one of ``FORMS``; None without one."""
    return next((PRONOUN_OF[word] for word in words_of(sentence) if word in PRONOUN_OF), None)

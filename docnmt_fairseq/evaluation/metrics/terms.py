"""Terminology accuracy: terms translated as in a glossary."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.evaluation.words import whole_words
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class TermOptions(MetricOptions):
    """Options of terminology accuracy."""

    terms: str = option("", "rows TERM<TAB>FORM|FORM...; requires --source", metavar="FILE")


@METRICS.register("terms")
class Terms(Metric):
    """Percentage of the term occurrences in the source for which the translation has one of the term's forms.

    A term that occurs twice in a sentence requires two forms; additional forms are ignored. Terms and forms match as
    whole words without case; a term inside a longer term of the list is not counted.
    """

    title = "terms"
    help = "terms translated as in a glossary, with --terms FILE --source FILE"
    Options = TermOptions
    options: TermOptions
    enabled_by = "terms"
    scores_documents = False
    needs_source = True

    def __init__(self, test_set: References, options: TermOptions):
        super().__init__(test_set, options)
        terms = read_terms(Path(options.terms))
        pattern = whole_words(terms)
        self.forms = {term: whole_words(forms) for term, forms in terms.items()}
        self.required: List[Dict[str, int]] = [
            Counter(filter(None, pattern.findall(_normalise(sentence)))) for sentence in segments(test_set.source or [])
        ]
        if not any(self.required):
            raise InputError(f"{options.terms}: none of these {len(terms)} terms is in the source; check the languages")

    def statistics(self, translation: Stream) -> Statistics:
        """Correctly translated and all term occurrences of each sentence."""
        return list(map(self._row, segments(translation), self.required))

    def _row(self, translation: str, required: Dict[str, int]) -> List[float]:
        text = _normalise(translation)
        correct = sum(min(count, len(self.forms[term].findall(text))) for term, count in required.items())
        return [float(correct), float(sum(required.values()))]


def read_terms(path: Path) -> Dict[str, Tuple[str, ...]]:
    """Target forms of each source term, casefolded.

    Args:
        path: rows ``TERM<TAB>FORM|FORM...``; rows of the same term are joined.

    Raises:
        InputError: a malformed row; names file and row.
    """
    terms: Dict[str, Tuple[str, ...]] = {}
    for row, text in enumerate(read_lines(path), start=1):
        if not text:
            continue
        fields = list(map(_normalise, text.split("\t")))
        forms = tuple(filter(None, map(str.strip, fields[-1].split("|"))))
        if len(fields) != 2 or not fields[0] or not forms:
            raise InputError.at(path, row, f"expected TERM<TAB>FORM|FORM..., found {text!r}")
        terms[fields[0]] = (*terms.get(fields[0], ()), *forms)
    return terms


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())

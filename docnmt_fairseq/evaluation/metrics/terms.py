"""Terms that are translated as a list says."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics, percent
from docnmt_fairseq.evaluation.terms import finder, read_terms
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class TermOptions(MetricOptions):
    """Which terms."""

    terms: Optional[str] = option(None, "rows TERM<TAB>FORM|FORM...; give --source, too", metavar="FILE")


@METRICS.register("terms")
class Terms(Metric):
    """Occurrences of terms in the source, in percent, for which the translation has one of their forms.

    A sentence with a term twice asks for two forms; more of them than that count no more. Terms and forms are whole
    words, without case, but for scripts without spaces, where they are found anywhere; a term inside a longer one of
    the list is not counted. Where a resample has no term, the score is 0.

    Raises:
        InputError: no list or no source is given, the list cannot be read, or the source has none of its terms.
    """

    title = "terms"
    help = "translated as a list says, with --terms FILE --source FILE"
    Options = TermOptions
    options: TermOptions
    asked_by = "terms"
    joins_documents = False
    needs_source = True

    def __init__(self, test_set: References, options: TermOptions):
        super().__init__(test_set, options)
        if options.terms is None:
            raise InputError("--metrics terms: which ones? Give --terms FILE, rows TERM<TAB>FORM|FORM...")
        terms = read_terms(Path(options.terms))
        find = finder(terms)
        self.forms = {term: finder(forms) for term, forms in terms.items()}
        self.wanted: List[Dict[str, int]] = [
            Counter(find.findall(_plain(sentence))) for sentence in segments(test_set.source or [])
        ]
        if not any(self.wanted):
            raise InputError(f"{options.terms}: the source has none of these {len(terms)} terms; right languages?")

    def statistics(self, translations: Sequence[Stream]) -> List[Statistics]:
        """Terms that are translated so, and terms; for each sentence."""
        return [list(map(self._row, segments(one), self.wanted)) for one in translations]

    def _row(self, translation: str, wanted: Dict[str, int]) -> List[float]:
        text = _plain(translation)
        found = sum(min(count, len(self.forms[term].findall(text))) for term, count in wanted.items())
        return [float(found), float(sum(wanted.values()))]

    def score(self, sums: Sequence[float]) -> float:
        """See :meth:`Metric.score`."""
        return percent(sums[0], sums[1])


def _plain(text: str) -> str:
    """A text as :func:`read_terms` writes terms."""
    return " ".join(text.casefold().split())

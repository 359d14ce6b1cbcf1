"""Lexical translation consistency ratio, LTCR (Lyu et al. 2021), with word alignments by eflomal."""

from collections import Counter, defaultdict
from itertools import chain, islice
from math import comb
from typing import Dict, Iterable, List, Sequence, Set, Tuple

from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.evaluation.words import Words, align, aligner, aligner_version, words_of

MIN_LETTERS = 4  # of a content word
MIN_DOCUMENTS = 4  # for excluding frequent words


@METRICS.register("lexical-consistency")
class LexicalConsistency(Metric):
    """Percentage of pairs of occurrences of a source word in a document that have the same translation.

    Pairs are counted for content words: words of at least four letters that occur in at most half of the documents (if
    there are at least four). Words are compared in lower case and as they are inflected; unaligned occurrences are
    ignored. The aligner is trained on the translation and the references, so a score does not depend on other systems,
    but alignments, and scores, vary slightly between runs. The statistics of a document are in the row of its first
    sentence, so documents must be resampled (``--test documents``).

    The metric is descriptive: a consistently wrong word is consistent.
    """

    title = "LTCR"
    help = "consistent translation of repeated words, with --source FILE (program eflomal, GPL-3)"
    measures_quality = False
    scores_documents = False
    needs_source = True

    def __init__(self, test_set: References, options: MetricOptions):
        super().__init__(test_set, options)
        aligner()  # fails before other metrics are computed
        self.source = [[words_of(sentence) for sentence in document] for document in test_set.source or []]
        self.content = content_words(self.source)

    def statistics(self, translation: Stream) -> Statistics:
        """Pairs with the same translation and all pairs, in the row of the first sentence of each document."""
        target = [words_of(sentence) for sentence in segments(translation)]
        references = [words_of(sentence) for stream in self.test_set.streams for sentence in segments(stream)]
        source = list(chain.from_iterable(self.source))
        pairs = zip(source, target, align(source * (1 + len(self.test_set.streams)), target + references))
        rows: Statistics = []
        for document in self.source:
            rows += [self._count_pairs(islice(pairs, len(document))), *([0.0, 0.0] for _ in document[1:])]
        return rows

    def _count_pairs(self, document: Iterable[Tuple[List[str], List[str], Dict[int, int]]]) -> List[float]:
        translations: Dict[str, Counter[str]] = defaultdict(Counter)  # of each source word
        for source, target, links in document:
            for i, word in enumerate(source):
                if i in links and word in self.content:
                    translations[word][target[links[i]]] += 1
        same = sum(comb(count, 2) for counts in translations.values() for count in counts.values())
        return [float(same), float(sum(comb(counts.total(), 2) for counts in translations.values()))]

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature with the aligner."""
        return super().format_signature({"aligner": aligner_version(), **details})


def content_words(documents: Sequence[Sequence[Words]]) -> Set[str]:
    """Content words of [documents, sentences, words]; see :class:`LexicalConsistency`."""
    frequency = Counter(word for document in documents for word in set(chain.from_iterable(document)))
    limit = len(documents) / 2 if len(documents) >= MIN_DOCUMENTS else len(documents)
    return {word for word, count in frequency.items() if count <= limit and len(word) >= MIN_LETTERS and word.isalpha()}
